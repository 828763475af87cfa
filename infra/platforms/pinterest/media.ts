import { stat } from 'node:fs/promises';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { FileInJson, type JsonWithFiles } from '../kit/client.ts';
import type { NetworkAnswer } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { isUploadFailed, subjectOf, type Uploader, type UploadWork, upload, wholeOf } from '../kit/upload.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';

/**
 * What a pin shows. Pictures are part of the call that makes the pin: Pinterest fetches them by their address, or they
 * travel within the call. A video is uploaded before it: registered, sent to the storage that Pinterest names, made ready.
 */

type Video = {
  readonly id: string;
  /** Address of the storage, and what it wants beside the file. */
  readonly to: string;
  readonly fields: Members;
};

/** Pinterest does not say how long it takes an upload that it has registered, nor how long it keeps one: about an hour. */
const policyMs = 3_600_000;
const keptMs = 6 * 3_600_000;

const brokenCode = 'media_failed';

const isGone = (answer: NetworkAnswer): boolean => answer.kind === 'refused' && answer.row.means === 'gone';

const iso = (ms: number): string => new Date(ms).toISOString();

const uploads = ({ request, steps }: UploadWork, { client, clock }: Bound): Uploader<Video> => {
  const subject = subjectOf(request);
  const statusOf = (id: string) =>
    client.call(subject, { method: 'GET', path: `/media/${encodeURIComponent(id)}` }, steps.signal);
  return {
    everyMs: 5_000,
    // They let anybody store a file in Pinterest's name.
    secrets: ['to', 'fields'],
    start: async () => {
      const ask = { method: 'POST', path: '/media', json: { media_type: 'video' } } as const;
      const answer = await client.call(subject, ask, steps.signal);
      if (answer.kind !== 'ok') return answer;
      const [id, to] = [textIn(answer.body, 'media_id'), textIn(answer.body, 'upload_url')];
      const fields = membersOf(answer.body.upload_parameters);
      if (id === null || to === null || fields === null) return { kind: 'silent', reason: 'the answer has no upload' };
      return { kind: 'started', own: { id, to, fields }, until: iso(clock() + policyMs) };
    },
    send: async (media, own, _sent, keep) => {
      // An earlier worker may have died with the file at its end.
      const seen = request.checkpoints.length > 0 ? await statusOf(own.id) : null;
      if (seen?.kind === 'ok' && textIn(seen.body, 'status') !== 'registered') return null;
      if (seen !== null && seen.kind !== 'ok' && !isGone(seen)) return seen;
      const fields = Object.fromEntries(
        Object.entries(own.fields).filter((field): field is [string, string] => typeof field[1] === 'string'),
      );
      const file = await wholeOf(media);
      const form = { fields, file, type: media.contentType, name: 'file' };
      const onSent = (bytes: number): void => steps.moved(bytes);
      const answer = await client.call(subject, { method: 'POST', path: own.to, form, onSent }, steps.signal);
      if (answer.kind === 'refused') {
        // The storage has no word of the file: the next attempt registers it anew.
        await keep(own, 0, iso(clock()));
        return { kind: 'silent', reason: `the storage of Pinterest answers with ${answer.status}` };
      }
      if (answer.kind !== 'ok') return answer;
      await keep(own, media.bytes, iso(clock() + keptMs));
      return null;
    },
    look: async ({ id }) => {
      const answer = await statusOf(id);
      const said = 'Pinterest could not process the video';
      if (isGone(answer)) return { kind: 'broken', code: brokenCode, said };
      if (answer.kind !== 'ok') return answer;
      const status = textIn(answer.body, 'status');
      if (status === 'failed') return { kind: 'broken', code: brokenCode, said };
      return status === 'succeeded' ? { kind: 'ready' } : { kind: 'wait', ms: null };
    },
  };
};

/** A video that Pinterest could not process is sent once more. */
const videoId = async (bound: Bound, work: UploadWork, video: PublishMedia): Promise<string | Failed> => {
  const first = await upload(work, video, uploads(work, bound));
  if (!isUploadFailed(first)) return first.id;
  if (first.failure.platformCode !== brokenCode) return first;
  const anew = { ...work, request: { ...work.request, checkpoints: [] } };
  const second = await upload(anew, video, uploads(anew, bound));
  return isUploadFailed(second) ? second : second.id;
};

/** Pinterest fetches within the call. */
const addressMs = 3_600_000;

/** How Pinterest gets pictures: `address`, it fetches them; `bytes`, they are part of the call. */
export type By = 'address' | 'bytes';

/** A call with addresses made nothing: Pinterest could not fetch them, so the next ones send the bytes. */
const triedAddresses = ({ checkpoints }: PublishRequest): boolean =>
  checkpoints.some(({ data, madeNothing }) => madeNothing === true && textIn(data, 'by') === 'address');

/** Null: it has no address that everybody can fetch. */
const addressOf = async (picture: PublishMedia): Promise<string | null> => {
  const url = await picture.url(addressMs);
  return url.startsWith('https://') ? url : null;
};

const bytesOf = async (picture: PublishMedia) => {
  const path = await picture.file();
  return { content_type: picture.contentType, data: new FileInJson({ path, start: 0, end: (await stat(path)).size }) };
};

type Fields = { readonly [name: string]: JsonWithFiles };

export interface Source {
  /** The member `media_source`. */
  readonly source: Fields;
  readonly by: By;
}

const picturesOf = async (pictures: readonly PublishMedia[], addresses: readonly string[] | null): Promise<Source> => {
  const isOne = pictures.length === 1;
  if (addresses !== null) {
    const items = addresses.map((url) => ({ url }));
    const source = isOne
      ? { source_type: 'image_url', ...items[0] }
      : { source_type: 'multiple_image_urls', items, index: 0 };
    return { source, by: 'address' };
  }
  const items: Fields[] = [];
  for (const picture of pictures) items.push(await bytesOf(picture));
  const source = isOne
    ? { source_type: 'image_base64', ...items[0] }
    : { source_type: 'multiple_image_base64', items, index: 0 };
  return { source, by: 'bytes' };
};

/** Seconds into a video whose post has no picture for its cover: many begin with a black one. */
const frameSeconds = 1;

const coverOf = async (cover: PublishMedia | null, address: string | null): Promise<Fields> => {
  if (cover === null) return { cover_image_key_frame_time: frameSeconds };
  if (address !== null) return { cover_image_url: address };
  const { content_type, data } = await bytesOf(cover);
  return { cover_image_content_type: content_type, cover_image_data: data };
};

/** The addresses of all pictures; null: one has none, or Pinterest could not fetch them before. */
const addressesOf = async (
  request: PublishRequest,
  pictures: readonly PublishMedia[],
): Promise<readonly string[] | null> => {
  if (triedAddresses(request)) return null;
  const all = await Promise.all(pictures.map(addressOf));
  const found = all.filter((one) => one !== null);
  return found.length === all.length ? found : null;
};

/** The gate lets through one video, or one to five pictures of one ratio. */
export const sourceOf = async (
  bound: Bound,
  { request, steps }: Pick<UploadWork, 'request' | 'steps'>,
): Promise<Source | Failed> => {
  const { media, cover } = request;
  const [video] = media;
  if (video?.kind !== 'video') return picturesOf(media, await addressesOf(request, media));
  const id = await videoId(bound, { bound, request, steps }, video);
  if (typeof id !== 'string') return id;
  const addresses = await addressesOf(request, cover === null ? [] : [cover]);
  const address = addresses?.[0] ?? null;
  const shown = await coverOf(cover, address);
  const source = { source_type: 'video_id', media_id: id, ...shown };
  return { source, by: address === null ? 'bytes' : 'address' };
};
