import { createHash } from 'node:crypto';
import type { Ask } from '../kit/client.ts';
import { failureOf, type NetworkAnswer, type NotOk } from '../kit/errors.ts';
import {
  callFor,
  type FileWork,
  type Finished,
  isUploadFailed,
  type KeepParts,
  type Look,
  type Started,
  subjectOf,
  type Uploader,
  type UploadItem,
  upload,
  uploadEach,
} from '../kit/upload.ts';
import { instantOf, integerIn, listIn, type Members, membersOf, numberIn, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { linkIn, readPage, readPicture } from '../shared/page.ts';
import { enc } from './tables.ts';

/** Files on their way to LinkedIn: learn.microsoft.com/linkedin, "Images API", "Videos API", "Documents API". */

/** An address that takes bytes without a token, so it is secret. `end`: exclusive. */
type Part = { readonly url: string; readonly start: number; readonly end: number };

type FileOfLinkedIn = {
  readonly id: string;
  /** Those that are missing. */
  readonly parts: readonly Part[];
  /** Of the parts that LinkedIn has. */
  readonly tags: readonly string[];
  readonly token: string;
};

const kinds = { image: 'images', gif: 'images', video: 'videos', document: 'documents' } as const;

/** A file of a post, or the picture of a card. */
interface Item extends UploadItem {
  readonly contentType: string;
  /** A part of it. */
  slice(start: number, end: number): Promise<Ask['bytes'] & object>;
}

/** Where it goes. */
interface Way extends FileWork {
  readonly kind: (typeof kinds)[keyof typeof kinds];
}

const maxParts = 1_500;
/** Of a part: those of all stand in a checkpoint. */
const tagForm = /^.{1,200}$/;
/** A post waits no longer for the picture of its card. */
const maxCardMs = 10_000;
/** Unused files stay at LinkedIn; how long is written nowhere. */
const keptMs = 86_400_000;
/** LinkedIn does not let every member ask for the state of a file: it gets this time. */
const blindMs: Readonly<Record<Way['kind'], number>> = { images: 3_000, videos: 20_000, documents: 5_000 };

/** An address that has ended, or was used, refuses bytes: the next attempt asks for another. */
const refusalOf = (answer: NotOk): NotOk => {
  if (answer.kind !== 'refused' || ![400, 403, 404, 410].includes(answer.status)) return answer;
  const { platformCode, platformMessage } = answer.failure;
  return { ...answer, row: { means: 'later' }, failure: failureOf('later', platformCode, platformMessage) };
};

/** The parts that LinkedIn asks for; null: they are not the file. */
const partsOf = (value: Members, bytes: number): readonly Part[] | null => {
  const single = textIn(value, 'uploadUrl');
  if (single !== null) return [{ url: single, start: 0, end: bytes }];
  const parts = listIn(value, 'uploadInstructions').map((one) => ({
    url: textIn(one, 'uploadUrl') ?? '',
    ...{ start: integerIn(one, 'firstByte') ?? -1, end: (integerIn(one, 'lastByte') ?? -1) + 1 },
  }));
  const fits = ({ url, start, end }: Part, at: number) =>
    url !== '' && start === (parts[at - 1]?.end ?? 0) && end > start;
  return parts.every(fits) && parts.length <= maxParts && parts.at(-1)?.end === bytes ? parts : null;
};

const lookOf = (body: Members): Look => {
  const status = textIn(body, 'status');
  if (status === 'AVAILABLE') return { kind: 'ready' };
  if (status !== 'PROCESSING_FAILED') return { kind: 'wait', ms: null };
  const said = textIn(body, 'processingFailureReason') ?? 'LinkedIn could not process the file';
  return { kind: 'broken', code: status, said };
};

const act = (way: Way, action: string, body: Members): Promise<NetworkAnswer> =>
  callFor(way, { method: 'POST', path: `/${way.kind}?action=${action}`, json: { [`${action}Request`]: body } });

const stateOf = (way: Way, id: string): Promise<NetworkAnswer> =>
  callFor(way, { method: 'GET', path: `/${way.kind}/${enc(id)}` });

const start = async (way: Way, bytes: number): Promise<Started<FileOfLinkedIn> | NotOk> => {
  const { externalId: owner } = way.request.account;
  const ofVideo = { fileSizeBytes: bytes, uploadCaptions: false, uploadThumbnail: false };
  const answer = await act(way, 'initializeUpload', { owner, ...(way.kind === 'videos' ? ofVideo : {}) });
  if (answer.kind !== 'ok') return answer;
  const value = membersOf(answer.body.value) ?? {};
  const [id, parts] = [textIn(value, way.kind.slice(0, -1)), partsOf(value, bytes)];
  if (id === null || parts === null || !/^urn:li:\w+:[\w-]{1,200}$/.test(id)) {
    return { kind: 'silent', reason: 'the answer does not say where the file goes' };
  }
  const ends = numberIn(value, 'uploadUrlExpiresAt') ?? numberIn(value, 'uploadUrlsExpireAt');
  const own = { id, parts, tags: [], token: textIn(value, 'uploadToken') ?? '' };
  return { kind: 'started', own, until: instantOf(ends) };
};

/** The parts of a video take no token. */
const send = async (way: Way, item: Item, from: FileOfLinkedIn, keep: KeepParts<FileOfLinkedIn>) => {
  const isVideo = way.kind === 'videos';
  const headers = { 'content-type': isVideo ? 'application/octet-stream' : item.contentType };
  let own = from;
  for (let [part] = own.parts; part !== undefined; [part] = own.parts) {
    const answer = await callFor(way, {
      ...{ method: 'PUT', path: part.url, bytes: await item.slice(part.start, part.end), headers },
      ...(isVideo ? { scheme: 'none' } : {}),
      onSent: (bytes) => way.steps.moved(bytes),
    });
    if (answer.kind !== 'ok') return refusalOf(answer);
    const { etag = '' } = answer.headers;
    if (isVideo && !tagForm.test(etag))
      return { kind: 'silent', reason: 'a part got no ETag that can be kept' } as const;
    own = { ...own, parts: own.parts.slice(1), tags: [...own.tags, etag] };
    const isLast = own.parts.length === 0;
    await keep(own, part.end, isLast ? new Date(way.bound.clock() + keptMs).toISOString() : undefined);
  }
  return null;
};

const uploaderOf = (way: Way): Uploader<FileOfLinkedIn, Item> => {
  let isBlind = false;
  return {
    start: ({ bytes }) => start(way, bytes),
    send: (item, own, _sent, keep) => send(way, item, own, keep),
    look: async ({ id }) => {
      const answer = await stateOf(way, id);
      if (answer.kind === 'ok') return lookOf(answer.body);
      if (answer.kind !== 'refused' || answer.status !== 403) return answer;
      if (isBlind) return { kind: 'ready' };
      isBlind = true;
      return { kind: 'wait', ms: blindMs[way.kind] };
    },
    secrets: ['parts', 'token'],
    everyMs: way.kind === 'videos' ? 5_000 : 1_000,
    ...(way.kind === 'videos' ? { finish: (_item, own, mayBeDone) => finish(way, own, mayBeDone) } : {}),
  };
};

const finish = async (way: Way, own: FileOfLinkedIn, mayBeDone: boolean): Promise<Finished<FileOfLinkedIn> | NotOk> => {
  const seen = mayBeDone ? await stateOf(way, own.id) : null;
  if (seen?.kind === 'ok' && textIn(seen.body, 'status') !== 'WAITING_UPLOAD') {
    return { kind: 'finished', own, look: lookOf(seen.body) };
  }
  const { id: video, token: uploadToken, tags: uploadedPartIds } = own;
  const answer = await act(way, 'finalizeUpload', { video, uploadToken, uploadedPartIds });
  // A second time it is refused: where the state is not shown, the post will say.
  const isAgain = mayBeDone && answer.kind === 'refused' && answer.row.means === 'content';
  return answer.kind === 'ok' || isAgain ? { kind: 'finished', own, look: null } : answer;
};

/** LinkedIn's ids of the files, in the order of the post, or why it does not have them. */
export const uploadAll = async (work: FileWork): Promise<readonly string[] | Failed> => {
  const held = await uploadEach<FileOfLinkedIn, Item>(
    work,
    (media) => ({ ...media, slice: async (from, end) => ({ path: await media.file(), start: from, end }) }),
    ({ kind }) => uploaderOf({ ...work, kind: kinds[kind] }),
  );
  return isUploadFailed(held) ? held : held.map(({ id }) => id);
};

/** LinkedIn does not look at the page of a link, and shows its address alone. Null: the text has none that leads to a page. */
export const articleOf = async (work: FileWork): Promise<Members | null> => {
  const { bound, request, steps } = work;
  const source = linkIn(request.content);
  if (request.media.length > 0 || source === null) return null;
  const reader = { http: bound.http, subject: subjectOf(request), signal: steps.signal };
  const page = await readPage(reader, source);
  if (page === null) return null;
  const { title, description, picture: url } = page;
  const picture = url === null ? null : await readPicture(reader, url, ['image/jpeg', 'image/png', 'image/gif']);
  const thumbnail = picture === null ? null : await cardOf(work, picture.bytes, picture.type);
  return {
    ...{ source, title: title.slice(0, 400) },
    ...(description === '' ? {} : { description: description.slice(0, 1_000) }),
    ...(thumbnail === null ? {} : { thumbnail }),
  };
};

/** Null: a card without a picture is better than no post. */
const cardOf = async (work: FileWork, bytes: Buffer, contentType: string): Promise<string | null> => {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const card = { mediaId: null, name: 'card', sha256, bytes: bytes.length, contentType, slice: async () => bytes };
  const held = await upload({ ...work, waitMs: maxCardMs }, card, uploaderOf({ ...work, kind: 'images' }));
  return isUploadFailed(held) ? null : held.id;
};
