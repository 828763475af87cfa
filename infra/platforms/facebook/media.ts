import type { PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import { membersAt, type NotOk } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { isUploadFailed, subjectOf, type Uploader, upload } from '../kit/upload.ts';
import { at, isMediaId, reading } from '../meta/graph.ts';
import { integerIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import type { Way } from './post.ts';

/** Files on their way to Facebook. None is visible, and one that no post names ends by itself. */

export interface Work {
  readonly bound: Bound;
  readonly request: PublishRequest;
  readonly steps: PublishSteps;
}

/** Unpublished photos were seen to last for a day; Facebook names no end of a video that is not finished. */
const keptMs = 20 * 3_600_000;

/** `id`: of the photo or video. `session`: of a video in parts, whose last call names it. */
export type File = { readonly id: string; readonly session?: string };
/** `url`: where its bytes go, with a token. */
type Reel = File & { readonly url: string };
/** `end`: Facebook wants the next part to end there. */
type Chunked = File & { readonly session: string; readonly end: number };

const untilOf = ({ bound }: Work): string => new Date(bound.clock() + keptMs).toISOString();
const noId = { kind: 'silent', reason: 'the answer has no id of the file' } as const;
const edgeOf = ({ request }: Work, edge: string): string => at(`${request.account.externalId}/${edge}`);
const call = ({ bound, request, steps }: Work, ask: Parameters<Bound['client']['call']>[1]) =>
  bound.client.call(subjectOf(request), ask, steps.signal);

/** "Page Photos": in one call. A photo of a scheduled post is `temporary`. */
const photoBy = (work: Work, isScheduled: boolean): Uploader<File> => ({
  start: async ({ altText, contentType, bytes, file }) => {
    const answer = await call(work, {
      ...{ method: 'POST', path: edgeOf(work, 'photos') },
      query: { published: 'false', ...(isScheduled ? { temporary: 'true' } : {}) },
      form: {
        fields: altText === null || altText === '' ? {} : { alt_text_custom: altText },
        ...{ name: 'source', type: contentType, file: { path: await file(), start: 0, end: bytes } },
      },
    });
    if (answer.kind !== 'ok') return answer;
    const id = textIn(answer.body, 'id') ?? '';
    return isMediaId(id) ? { kind: 'started', own: { id }, until: untilOf(work) } : noId;
  },
});

/** "Reels Publishing", "Page Stories": a video that a server of its own takes, and goes on with. */
const reelBy = (work: Work, way: Way): Uploader<Reel> => {
  let isNew = false;
  return {
    start: async () => {
      isNew = true;
      const answer = await call(work, { method: 'POST', path: edgeOf(work, way), query: { upload_phase: 'start' } });
      if (answer.kind !== 'ok') return answer;
      const [id, url] = [textIn(answer.body, 'video_id') ?? '', textIn(answer.body, 'upload_url') ?? ''];
      const { uploads = '' } = work.bound.app.addresses;
      // The token goes along: it goes to no other host.
      if (!isMediaId(id) || !url.startsWith(`${uploads}/`)) return noId;
      return { kind: 'started', own: { id, url }, until: untilOf(work) };
    },
    send: async ({ bytes, file }, { id, url }, _sent, keep): Promise<NotOk | null> => {
      const from = isNew ? 0 : await sentOf(work, id, bytes);
      if (typeof from !== 'number') return from;
      if (from >= bytes) return null;
      const answer = await call(work, {
        ...{ method: 'POST', path: url, scheme: 'OAuth', headers: { offset: String(from), file_size: String(bytes) } },
        bytes: { path: await file(), start: from, end: bytes },
        onSent: (count) => work.steps.moved(count),
      });
      if (answer.kind === 'ok') await keep({ id, url }, bytes);
      return answer.kind === 'ok' ? null : answer;
    },
  };
};

/** Bytes of an earlier worker. */
const sentOf = async (work: Work, id: string, bytes: number): Promise<number | NotOk> => {
  const answer = await call(work, reading(id, { fields: 'status' }));
  if (answer.kind !== 'ok') return answer;
  const phase = membersOf(membersOf(answer.body.status)?.uploading_phase);
  if (textIn(phase ?? {}, 'status') === 'complete') return bytes;
  return Math.min(
    integerIn(phase ?? {}, 'bytes_transfered') ?? integerIn(phase ?? {}, 'bytes_transferred') ?? 0,
    bytes,
  );
};

const offsetIn = (body: Members | null, name: string): number => {
  const said = membersAt(body ?? undefined, name)[0];
  return /^\d{1,15}$/.test(String(said)) ? Number(said) : Number.NaN;
};

/** "Page Videos", resumable: each answer says which bytes come next. */
const chunksBy = (work: Work): Uploader<Chunked> => ({
  start: async ({ bytes }) => {
    const answer = await call(work, {
      ...{ method: 'POST', path: edgeOf(work, 'videos'), query: { upload_phase: 'start' } },
      fields: { file_size: String(bytes) },
    });
    if (answer.kind !== 'ok') return answer;
    const { body } = answer;
    const [id, session] = [textIn(body, 'video_id') ?? '', textIn(body, 'upload_session_id') ?? ''];
    const end = offsetIn(body, 'end_offset');
    const isGood = isMediaId(id) && session !== '' && offsetIn(body, 'start_offset') === 0 && end > 0;
    return isGood ? { kind: 'started', own: { id, session, end }, until: untilOf(work) } : noId;
  },
  send: async ({ bytes, contentType, file }, own, sent, keep): Promise<NotOk | null> => {
    let [start, { end }, isCorrected] = [sent, own, false];
    while (start < bytes) {
      const answer = await call(work, {
        ...{ method: 'POST', path: edgeOf(work, 'videos'), query: { upload_phase: 'transfer' } },
        form: {
          fields: { upload_session_id: own.session, start_offset: String(start) },
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
export const uploaded = async (work: Work, way: Way, isScheduled: boolean): Promise<readonly File[] | Failed> => {
  const files: File[] = [];
  for (const media of work.request.media) {
    // With another text for people who do not see it, a photo is another file, and so is one of a scheduled post.
    const item = {
      ...{ ...media, name: `${media.mediaId} ${way}${isScheduled ? ' scheduled' : ''}` },
      sha256: media.altText === null ? media.sha256 : `${media.sha256} ${media.altText}`,
    };
    const file =
      way === 'videos'
        ? await upload<Chunked>(work, item, chunksBy(work))
        : way === 'video_reels' || way === 'video_stories'
          ? await upload<Reel>(work, item, reelBy(work, way))
          : await upload<File>(work, item, photoBy(work, isScheduled));
    if (isUploadFailed(file)) return file;
    files.push(file);
  }
  return files;
};
