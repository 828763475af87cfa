import type { Json, PublishMedia } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import type { NetworkAnswer, NotOk } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import {
  callFor,
  type FileWork,
  isUploadFailed,
  type Look,
  type Started,
  type Uploader,
  type UploadWork,
  uploadEach,
  wholeOf,
} from '../kit/upload.ts';
import { membersOf, numberIn, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';

/** Files on their way to X: a picture in one call, a video or a GIF in segments (docs.x.com, "Chunked media upload"). */

type XUpload = {
  /** X's. */
  readonly id: string;
  readonly segmentBytes: number;
};

export interface MediaSettings {
  /** Bytes of a segment: 1 to 4 MB are proven. Default 4,000,000. */
  readonly segmentBytes?: number;
  /** Milliseconds that one attempt waits for X to process a file; the next attempt goes on. Default 600,000. */
  readonly processingMs?: number;
}

const maxSegments = 1_000;
const noId: NotOk = { kind: 'silent', reason: 'the answer has no id of the file' };

class MediaCalls {
  readonly #work: FileWork;
  readonly #segmentBytes: number;

  constructor(work: FileWork, segmentBytes: number) {
    this.#work = work;
    this.#segmentBytes = segmentBytes;
  }

  #ask(ask: Ask): Promise<NetworkAnswer> {
    return callFor(this.#work, ask);
  }

  #moved = (bytes: number): void => this.#work.steps.moved(bytes);

  #untilOf(data: Json | undefined): string | null {
    const seconds = numberIn(data, 'expires_after_secs');
    const now = this.#work.bound.clock();
    return seconds === null || seconds < 0 || seconds > 1e9 ? null : new Date(now + seconds * 1_000).toISOString();
  }

  #started(answer: NetworkAnswer, segmentBytes: number): Started<XUpload> | NotOk {
    if (answer.kind !== 'ok') return answer;
    const { data } = answer.body;
    const id = textIn(data, 'id');
    if (id === null || !/^\d{1,19}$/.test(id)) return noId;
    return { kind: 'started', own: { id, segmentBytes }, until: this.#untilOf(data) };
  }

  image(): Uploader<XUpload> {
    return {
      start: async (media) => {
        const file = await wholeOf(media);
        const form = { name: 'media', fields: { media_category: 'tweet_image' }, file, type: media.contentType };
        const ask = { method: 'POST', path: '/2/media/upload', form, onSent: this.#moved } as const;
        return this.#started(await this.#ask(ask), 0);
      },
      describe: (media, { id }) => this.#describe(media, id),
    };
  }

  segments(): Uploader<XUpload> {
    return {
      start: async (media) => {
        const json = {
          ...{ media_type: media.contentType, total_bytes: media.bytes },
          media_category: media.kind === 'video' ? 'tweet_video' : 'tweet_gif',
        };
        const bytes = Math.max(this.#segmentBytes, Math.ceil(media.bytes / maxSegments));
        return this.#started(await this.#ask({ method: 'POST', path: '/2/media/upload/initialize', json }), bytes);
      },
      send: async (media, own, sent, keep) => {
        const path = await media.file();
        for (let start = sent; start < media.bytes; start += own.segmentBytes) {
          const file = { path, start, end: Math.min(start + own.segmentBytes, media.bytes) };
          const fields = { segment_index: String(start / own.segmentBytes) };
          const form = { name: 'media', fields, file, type: 'application/octet-stream' };
          const to = `/2/media/upload/${own.id}/append`;
          const answer = await this.#ask({ method: 'POST', path: to, form, onSent: this.#moved });
          this.#work.steps.signal.throwIfAborted();
          if (answer.kind !== 'ok') return answer;
          await keep(own, file.end);
        }
        return null;
      },
      finish: async (_media, own, mayBeDone) => {
        const seen = mayBeDone ? await this.#status(own) : null;
        if (seen !== null && seen.kind !== 'ok') return seen;
        const info = membersOf(seen?.body.data)?.processing_info;
        if (info !== undefined && info !== null) return { kind: 'finished', own, look: lookOf(info) };
        const answer = await this.#ask({ method: 'POST', path: `/2/media/upload/${own.id}/finalize` });
        if (answer.kind !== 'ok') return answer;
        const { data } = answer.body;
        // Without it the file is ready at once.
        const look = lookOf(membersOf(data)?.processing_info ?? { state: 'succeeded' });
        return { kind: 'finished', own, until: this.#untilOf(data), look };
      },
      look: async (own) => {
        const answer = await this.#status(own);
        if (answer.kind !== 'ok') return answer;
        const { data } = answer.body;
        if (textIn(data, 'id') !== own.id) return { kind: 'silent', reason: 'the answer is not about the file' };
        // A file without it needs no processing.
        return lookOf(membersOf(data)?.processing_info ?? { state: 'succeeded' });
      },
      describe: (media, { id }) => this.#describe(media, id),
    };
  }

  #status({ id }: XUpload): Promise<NetworkAnswer> {
    return this.#ask({ method: 'GET', path: '/2/media/upload', query: { command: 'STATUS', media_id: id } });
  }

  /** X takes a description of pictures and GIFs, not of videos. */
  async #describe({ altText, kind }: PublishMedia, id: string): Promise<NotOk | null> {
    if (altText === null || altText === '' || kind === 'video') return null;
    const json = { id, metadata: { alt_text: { text: altText } } };
    const answer = await this.#ask({ method: 'POST', path: '/2/media/metadata', json });
    return answer.kind === 'ok' ? null : answer;
  }
}

/** @param info `processing_info` */
const lookOf = (info: Json): Look => {
  const state = textIn(info, 'state');
  // X has been seen to keep a file in progress that has an error.
  const error = membersOf(membersOf(info)?.error);
  if (state === 'failed' || error !== null) {
    const said = textIn(error, 'message') ?? 'X could not process the file';
    return { kind: 'broken', code: textIn(error, 'name'), said };
  }
  if (state === 'succeeded') return { kind: 'ready' };
  const seconds = numberIn(info, 'check_after_secs');
  return { kind: 'wait', ms: seconds === null ? null : seconds * 1_000 };
};

/** X's ids of the files, in the order of the post, or why it does not have them. */
export const uploadAll = async (
  bound: Bound,
  { segmentBytes = 4_000_000, processingMs }: MediaSettings,
  { request, steps }: Pick<UploadWork, 'request' | 'steps'>,
): Promise<readonly string[] | Failed> => {
  const work = { bound, request, steps, ...(processingMs === undefined ? {} : { waitMs: processingMs }) };
  const calls = new MediaCalls(work, segmentBytes);
  const held = await uploadEach(
    work,
    (media) => media,
    ({ kind }) => (kind === 'image' ? calls.image() : calls.segments()),
  );
  return isUploadFailed(held) ? held : held.map(({ id }) => id);
};
