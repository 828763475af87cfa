import { membersAt, type NotOk } from '../kit/errors.ts';
import { callFor, type FileWork, type Started, type Uploader, uploadEach, wholeOf } from '../kit/upload.ts';
import { at, isMediaId, reading } from '../meta/graph.ts';
import { integerIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { isVideo, type Way } from './post.ts';

/** Files on their way to Facebook. None is visible, and one that no post names ends by itself. */

/** Unpublished photos were seen to last for a day; Facebook names no end of a video that is not finished. */
const keptMs = 20 * 3_600_000;

/** `id`: of the photo or video. */
export type File = {
  readonly id: string;
  /** Where the bytes of a reel go, with our token. */
  readonly url?: string;
  /** Of a video in parts: the last call names it. */
  readonly session?: string;
  /** Facebook wants its next part to end there. */
  readonly end?: number;
};

const begun = ({ bound }: FileWork, own: File, isWhole = true): Started<File> | NotOk =>
  isWhole && isMediaId(own.id)
    ? { kind: 'started', own, until: new Date(bound.clock() + keptMs).toISOString() }
    : { kind: 'silent', reason: 'the answer has no id of the file' };
const edgeOf = ({ request }: FileWork, edge: string): string => at(`${request.account.externalId}/${edge}`);

/** "Page Photos": in one call. A photo of a scheduled post is `temporary`. */
const photoBy = (work: FileWork, isScheduled: boolean): Uploader<File> => ({
  start: async (media) => {
    const { altText, contentType } = media;
    const answer = await callFor(work, {
      ...{ method: 'POST', path: edgeOf(work, 'photos') },
      query: { published: 'false', ...(isScheduled ? { temporary: 'true' } : {}) },
      form: {
        fields: altText === null || altText === '' ? {} : { alt_text_custom: altText },
        ...{ name: 'source', type: contentType, file: await wholeOf(media) },
      },
    });
    return answer.kind === 'ok' ? begun(work, { id: textIn(answer.body, 'id') ?? '' }) : answer;
  },
});

/** "Reels Publishing", "Page Stories": a video that a server of its own takes, and goes on with. */
const reelBy = (work: FileWork, way: Way): Uploader<File> => {
  let isNew = false;
  return {
    start: async () => {
      isNew = true;
      const answer = await callFor(work, { method: 'POST', path: edgeOf(work, way), query: { upload_phase: 'start' } });
      if (answer.kind !== 'ok') return answer;
      const [id, url] = [textIn(answer.body, 'video_id') ?? '', textIn(answer.body, 'upload_url') ?? ''];
      const { uploads = '' } = work.bound.app.addresses;
      // The token goes along: it goes to no other host.
      return begun(work, { id, url }, url.startsWith(`${uploads}/`));
    },
    send: async ({ bytes, file }, own, _sent, keep): Promise<NotOk | null> => {
      const from = isNew ? 0 : await sentOf(work, own.id, bytes);
      if (typeof from !== 'number') return from;
      if (from >= bytes) return null;
      const answer = await callFor(work, {
        ...{ method: 'POST', path: own.url ?? '', scheme: 'OAuth' },
        headers: { offset: String(from), file_size: String(bytes) },
        bytes: { path: await file(), start: from, end: bytes },
        onSent: (count) => work.steps.moved(count),
      });
      if (answer.kind !== 'ok') return answer;
      await keep(own, bytes);
      return null;
    },
  };
};

/** Bytes of an earlier worker. */
const sentOf = async (work: FileWork, id: string, bytes: number): Promise<number | NotOk> => {
  const answer = await callFor(work, reading(id, { fields: 'status' }));
  if (answer.kind !== 'ok') return answer;
  const phase = membersOf(answer.body.status)?.uploading_phase;
  if (textIn(phase, 'status') === 'complete') return bytes;
  return Math.min(integerIn(phase, 'bytes_transfered') ?? integerIn(phase, 'bytes_transferred') ?? 0, bytes);
};

const offsetIn = (body: Members | null, name: string): number => {
  const said = membersAt(body ?? undefined, name)[0];
  return /^\d{1,15}$/.test(String(said)) ? Number(said) : Number.NaN;
};

/** "Page Videos", resumable: each answer says which bytes come next. */
const chunksBy = (work: FileWork): Uploader<File> => ({
  start: async ({ bytes }) => {
    const answer = await callFor(work, {
      ...{ method: 'POST', path: edgeOf(work, 'videos'), query: { upload_phase: 'start' } },
      fields: { file_size: String(bytes) },
    });
    if (answer.kind !== 'ok') return answer;
    const { body } = answer;
    const [id, session] = [textIn(body, 'video_id') ?? '', textIn(body, 'upload_session_id') ?? ''];
    const end = offsetIn(body, 'end_offset');
    return begun(work, { id, session, end }, session !== '' && offsetIn(body, 'start_offset') === 0 && end > 0);
  },
  send: async ({ bytes, contentType, file }, own, sent, keep): Promise<NotOk | null> => {
    const { session = '' } = own;
    let [start, { end = bytes }, isCorrected] = [sent, own, false];
    while (start < bytes) {
      const answer = await callFor(work, {
        ...{ method: 'POST', path: edgeOf(work, 'videos'), query: { upload_phase: 'transfer' } },
        form: {
          fields: { upload_session_id: session, start_offset: String(start) },
          ...{ name: 'video_file_chunk', type: contentType, file: { path: await file(), start, end } },
        },
        onSent: (count) => work.steps.moved(count),
      });
      work.steps.signal.throwIfAborted();
      // An earlier worker may have come further: Facebook then says where it is.
      const isElsewhere = answer.kind === 'refused' && offsetIn(answer.body, 'error.error_data.start_offset') >= 0;
      if (answer.kind !== 'ok' && (!isElsewhere || isCorrected)) return answer;
      isCorrected = isElsewhere;
      const within = answer.kind === 'ok' ? '' : 'error.error_data.';
      const body = 'body' in answer ? answer.body : null;
      const next = [offsetIn(body, `${within}start_offset`), offsetIn(body, `${within}end_offset`)] as const;
      const isForward = next[0] > start || isElsewhere;
      if (!isForward || next[0] > bytes || (next[0] < bytes && !(next[1] > next[0] && next[1] <= bytes))) {
        return { kind: 'silent', reason: 'the answer does not say which part comes next' };
      }
      [start, end] = next;
      await keep({ ...own, end }, start);
    }
    return null;
  },
});

/** All files, in their order. */
export const uploaded = (work: FileWork, way: Way, isScheduled: boolean): Promise<readonly File[] | Failed> => {
  const videos = way === 'videos' ? chunksBy : reelBy;
  return uploadEach(
    work,
    // With another text for people who do not see it, a photo is another file, and so is one of a scheduled post.
    (media) => ({
      ...{ ...media, name: `${media.mediaId} ${way}${isScheduled ? ' scheduled' : ''}` },
      sha256: media.altText === null ? media.sha256 : `${media.sha256} ${media.altText}`,
    }),
    () => (isVideo(way) ? videos(work, way) : photoBy(work, isScheduled)),
  );
};
