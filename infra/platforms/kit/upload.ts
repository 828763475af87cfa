import type { FileSlice, NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishMedia, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import { type Members, membersOf, numberIn, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { opened, sealed } from './app.ts';
import type { Ask } from './client.ts';
import { beforeBoundary, failureOf, type NetworkAnswer, type NotOk } from './errors.ts';
import type { Bound } from './network.ts';

/**
 * A file on its way to a network, as the checkpoint `file` keeps it: started, sent part by part, finished, made ready. An
 * upload publishes nothing, and each worker goes on where the last one stopped.
 */

/** What the network says of a file that it makes ready. */
export type Look =
  | { readonly kind: 'ready' }
  /** `code`: the network's own; the next attempt uploads the file again. */
  | { readonly kind: 'broken'; readonly code: string | null; readonly said: string }
  /** `ms`: when the network wants to be asked again; null: it does not say. */
  | { readonly kind: 'wait'; readonly ms: number | null };

/** `until`: ISO 8601, until which the network keeps it; null: it does not say. */
export interface Started<Own> {
  readonly kind: 'started';
  readonly own: Own;
  readonly until: string | null;
}

/** Tells what arrived. `own` may have changed (tags of parts), and the end of it all too. */
export type KeepParts<Own> = (own: Own, sent: number, until?: string) => Promise<void>;

/** A file, or what the network makes of files and text before it is published: the container of a carousel. */
export interface UploadItem {
  /** Of the asset; null: it is no file, and no failure of it is about one. */
  readonly mediaId: string | null;
  /** Tells it from the others of its post. Default: `mediaId`. */
  readonly name?: string;
  /** Of its content: with another one it begins anew. */
  readonly sha256: string;
  /** 0: nothing is sent. */
  readonly bytes: number;
}

/** How a network takes a file. What it lacks is no step of it. */
export interface Uploader<Own extends Members, Item extends UploadItem = PublishMedia> {
  /** Registers the file; for a network that takes it in one call or fetches it, that call. */
  start(item: Item): Promise<Started<Own> | NotOk>;
  /** Sends what is missing, from `sent` bytes on, and calls `keep` after each part. Null: all of it arrived. */
  send?(item: Item, own: Own, sent: number, keep: KeepParts<Own>): Promise<NotOk | null>;
  /** @param mayBeDone an earlier worker may have finished it: it asks before it does so again */
  finish?(item: Item, own: Own, mayBeDone: boolean): Promise<Finished<Own> | NotOk>;
  /** Asks whether the file is ready. */
  look?(own: Own): Promise<Look | NotOk>;
  /** Says more of a file that is ready, before the post names it. Null: said. */
  describe?(item: Item, own: Own): Promise<NotOk | null>;
  /** Milliseconds between two looks where the network names none. */
  readonly everyMs?: number;
  /** Members of what is kept that are secret: an address that takes the file without a token. */
  readonly secrets?: readonly (keyof Own & string)[];
}

export interface Finished<Own> {
  readonly kind: 'finished';
  readonly own: Own;
  readonly until?: string | null;
  /** What the answer said of the file; null: nothing, so it is asked for. */
  readonly look: Look | null;
}

export interface UploadWork {
  readonly bound: Pick<Bound, 'app' | 'clock' | 'pause'>;
  readonly request: PublishRequest;
  readonly steps: PublishSteps;
  /** Milliseconds that one attempt waits for a file; the next attempt goes on. Default 600,000. */
  readonly waitMs?: number;
}

/** The work of a network that has calls of its own for files. */
export interface FileWork extends UploadWork {
  readonly bound: Bound;
}

/** A call of an upload. */
export const callFor = ({ bound, request, steps }: FileWork, ask: Ask): Promise<NetworkAnswer> =>
  bound.client.call(subjectOf(request), ask, steps.signal);

/** A file as the body of a call, or as the last field of its form. */
export const wholeOf = async ({ file, bytes }: Pick<PublishMedia, 'file' | 'bytes'>): Promise<FileSlice> => ({
  ...{ path: await file(), start: 0, end: bytes },
});

/** What of the work an upload itself needs: a comment has no more. */
type Needed = Omit<UploadWork, 'request' | 'steps'> & {
  readonly request: Pick<PublishRequest, 'checkpoints'>;
  readonly steps: Pick<PublishSteps, 'checkpoint' | 'signal'>;
};

const states = ['sending', 'sent', 'processing', 'ready'] as const;
type State = (typeof states)[number] | 'failed';

/** As the checkpoint has it. */
interface KeptUpload<Own> {
  readonly name: string;
  readonly sha256: string;
  readonly own: Own;
  /** ISO 8601. */
  readonly until: string;
  /** Bytes that the network has. */
  readonly sent: number;
  readonly state: State;
}

export const subjectOf = ({
  account,
  targetId,
}: Pick<PublishRequest, 'account' | 'targetId'>): NetworkCall['subject'] => ({ accountId: account.id, targetId });

/** Of what is kept of a file: sealed it is a third longer, and an append takes 512 KiB. */
const maxOwnBytes = 256 * 1_024;
/** Where a network names no end. */
const shortestMs = 3_600_000;
/** So much time must be left for what follows. */
const spareMs = 600_000;
/** Parts between two checkpoints: a worker that dies costs no more than these. */
const perCheckpoint = 4;
/** Preparation without a sign of life for 60 s is ended. */
const signOfLifeMs = 20_000;
const [shortestWaitMs, longestWaitMs] = [1_000, 25_000];
const usualWaitMs = 1_000;

export const isUploadFailed = <Own>(result: Own | Failed): result is Failed =>
  typeof result === 'object' && result !== null && 'kind' in result && 'failure' in result;

/** `upload` was the step of adapters before the kit: their processes, which run beside ours for a while, cannot read these. */
const step = 'file';

/** Null: the secret members cannot be opened. */
const openedOwn = ({ app }: UploadWork['bound'], own: Members): Members | null => {
  const { sealed: text, ...others } = own;
  if (typeof text !== 'string') return own;
  const secret = opened(app, text);
  return secret === null ? null : { ...others, ...secret };
};

const nameOf = ({ name, mediaId }: UploadItem): string => name ?? mediaId ?? '';

/** The upload of an earlier try that can be gone on with. */
const earlier = <Own extends Members>({ request, bound }: Needed, item: UploadItem): KeptUpload<Own> | null => {
  const { sha256 } = item;
  const name = nameOf(item);
  const { data } = request.checkpoints.findLast((one) => one.step === step && textIn(one.data, 'name') === name) ?? {};
  const kept = membersOf(membersOf(data)?.own);
  const state = states.find((one) => one === textIn(data, 'state'));
  const [until, sent] = [textIn(data, 'until'), numberIn(data, 'sent')];
  if (kept === null || state === undefined || until === null || sent === null) return null;
  if (textIn(data, 'sha256') !== sha256 || Date.parse(until) - bound.clock() <= spareMs) return null;
  const own = openedOwn(bound, kept);
  return own === null ? null : { name, sha256, own: own as Own, until, sent, state };
};

/** Of the calls of an upload a file is at fault where the network refuses it, and where it could not be sent. */
const notOk = ({ bound }: Needed, { mediaId }: UploadItem, answer: NotOk): Failed => {
  const failed = beforeBoundary(answer, bound.clock());
  const { category } = failed.failure;
  const isOfFile = category === 'invalid_content' || category === 'media' || failed.kind === 'deferred';
  return isOfFile ? { ...failed, failure: { ...failed.failure, mediaId } } : failed;
};

class FileUpload<Own extends Members, Item extends UploadItem> {
  readonly #work: Needed;
  readonly #item: Item;
  readonly #by: Uploader<Own, Item>;
  /** An earlier attempt began it. */
  #isResumed = false;

  constructor(work: Needed, item: Item, by: Uploader<Own, Item>) {
    this.#work = work;
    this.#item = item;
    this.#by = by;
  }

  async run(): Promise<Own | Failed> {
    const found = earlier<Own>(this.#work, this.#item);
    if (found?.state === 'ready') return found.own;
    this.#isResumed = found !== null;
    const started = found ?? (await this.#start());
    if (isUploadFailed(started)) return started;
    const sent = started.state === 'sending' ? await this.#send(started) : started;
    if (isUploadFailed(sent)) return sent;
    const finished = sent.state === 'sent' ? await this.#finish(sent, found?.state === 'sent') : sent;
    if (isUploadFailed(finished)) return finished;
    // What is not known to be ready is looked at.
    const ready = finished.state === 'ready' ? finished : await this.#ready(finished, null);
    if (isUploadFailed(ready)) return ready;
    const described = (await this.#by.describe?.(this.#item, ready.own)) ?? null;
    this.#work.steps.signal.throwIfAborted();
    if (described !== null) return notOk(this.#work, this.#item, described);
    return (await this.#keep({ ...ready, state: 'ready' })).own;
  }

  async #keep(upload: KeptUpload<Own>): Promise<KeptUpload<Own>> {
    await this.#work.steps.checkpoint(step, { ...upload, own: this.#keptOwn(upload.own) });
    return upload;
  }

  #keptOwn(own: Own): Members {
    const { secrets = [] } = this.#by;
    if (secrets.length === 0) return own;
    const of = (isSecret: boolean) =>
      Object.fromEntries(Object.entries(own).filter(([name]) => secrets.includes(name) === isSecret));
    return { ...of(false), sealed: sealed(this.#work.bound.app, of(true)) };
  }

  /**
   * An upload that the network does not take any more is of no use to the next attempt. One of an earlier attempt may have
   * ended since: only of one that has just begun a refusal is about the file.
   */
  async #givenUp(upload: KeptUpload<Own>, answer: NotOk): Promise<Failed> {
    const failed = notOk(this.#work, this.#item, answer);
    const { failure } = failed;
    const isOver = failed.kind === 'failed' && ['invalid_content', 'media'].includes(failure.category);
    const isClosed = upload.state === 'sending' && answer.kind === 'refused' && answer.row.means === 'later';
    if (isOver || isClosed) await this.#keep({ ...upload, state: 'failed' });
    if (!isOver || !this.#isResumed) return failed;
    const { platformCode, platformMessage, mediaId } = failure;
    return { kind: 'deferred', failure: failureOf('later', platformCode, platformMessage, mediaId) };
  }

  #untilOf(until: string | null | undefined, orElse: string): string {
    return until === null || until === undefined || Number.isNaN(Date.parse(until)) ? orElse : until;
  }

  async #start(): Promise<KeptUpload<Own> | Failed> {
    const { bound, steps } = this.#work;
    const started = await this.#by.start(this.#item);
    steps.signal.throwIfAborted();
    if (started.kind !== 'started') return notOk(this.#work, this.#item, started);
    if (Buffer.byteLength(JSON.stringify(started.own)) > maxOwnBytes) {
      const said = 'the network says more of where the file goes than can be kept';
      return { kind: 'failed', failure: failureOf('media', null, said, this.#item.mediaId) };
    }
    const { sha256 } = this.#item;
    const until = this.#untilOf(started.until, new Date(bound.clock() + shortestMs).toISOString());
    const upload = { name: nameOf(this.#item), sha256, own: started.own, until, sent: 0 };
    const { send, finish, look } = this.#by;
    // Nothing is left to die in.
    if (send === undefined && finish === undefined && look === undefined) return { ...upload, state: 'ready' };
    return this.#keep({ ...upload, state: send === undefined ? 'sent' : 'sending' });
  }

  async #send(from: KeptUpload<Own>): Promise<KeptUpload<Own> | Failed> {
    let upload = from;
    let unkept = 0;
    const keep: KeepParts<Own> = async (own, sent, until) => {
      upload = { ...upload, own, sent, until: this.#untilOf(until, upload.until) };
      unkept += 1;
      // The end of the last part is kept as the end of all.
      if (unkept < perCheckpoint || sent >= this.#item.bytes) return;
      unkept = 0;
      await this.#keep(upload);
    };
    const answer = (await this.#by.send?.(this.#item, from.own, from.sent, keep)) ?? null;
    this.#work.steps.signal.throwIfAborted();
    if (answer === null) return this.#keep({ ...upload, sent: this.#item.bytes, state: 'sent' });
    // What arrived is not sent again.
    if (unkept > 0) await this.#keep(upload);
    return this.#givenUp(upload, answer);
  }

  async #finish(sent: KeptUpload<Own>, mayBeDone: boolean): Promise<KeptUpload<Own> | Failed> {
    const finished = await this.#by.finish?.(this.#item, sent.own, mayBeDone);
    this.#work.steps.signal.throwIfAborted();
    if (finished === undefined) {
      return this.#by.look === undefined ? { ...sent, state: 'ready' } : this.#ready(sent, null);
    }
    if (finished.kind !== 'finished') return this.#givenUp(sent, finished);
    const upload = { ...sent, own: finished.own, until: this.#untilOf(finished.until, sent.until) };
    if (finished.look?.kind === 'ready') return { ...upload, state: 'ready' };
    return this.#ready(await this.#keep({ ...upload, state: 'processing' }), finished.look);
  }

  /** Looks as often as the network says, until the file is ready. @param said the last look; null: none yet */
  async #ready(upload: KeptUpload<Own>, said: Look | null): Promise<KeptUpload<Own> | Failed> {
    const { bound, steps, waitMs = 600_000 } = this.#work;
    const { clock: now, pause } = bound;
    const { mediaId } = this.#item;
    const until = now() + waitMs;
    let [look, aliveAt] = [said, now()];
    for (;;) {
      if (look?.kind === 'broken') {
        await this.#keep({ ...upload, state: 'failed' });
        return { kind: 'failed', failure: failureOf('media', look.code, look.said, mediaId) };
      }
      if (look?.kind === 'ready') return { ...upload, state: 'ready' };
      if (now() >= until) return { kind: 'deferred', failure: failureOf('processing', null, null, mediaId) };
      if (look !== null) {
        const ms = look.ms ?? this.#by.everyMs ?? usualWaitMs;
        await pause(Math.min(Math.max(ms, shortestWaitMs), longestWaitMs), steps.signal);
      }
      steps.signal.throwIfAborted();
      if (now() - aliveAt >= signOfLifeMs) {
        await this.#keep({ ...upload, state: 'processing' });
        aliveAt = now();
      }
      const answer = await this.#by.look?.(upload.own);
      steps.signal.throwIfAborted();
      if (answer === undefined) return { ...upload, state: 'ready' };
      if (answer.kind !== 'ready' && answer.kind !== 'broken' && answer.kind !== 'wait')
        return this.#givenUp(upload, answer);
      look = answer;
    }
  }
}

/** What the post names the file by, or why it cannot. */
export const upload = <Own extends Members, Item extends UploadItem = PublishMedia>(
  work: Needed,
  item: Item,
  by: Uploader<Own, Item>,
): Promise<Own | Failed> => new FileUpload(work, item, by).run();

/** All files of a post, in their order, one after the other. */
export const uploadEach = async <Own extends Members, Item extends UploadItem = PublishMedia>(
  work: UploadWork,
  itemOf: (media: PublishMedia) => Item,
  byOf: (media: PublishMedia) => Uploader<Own, Item>,
): Promise<readonly Own[] | Failed> => {
  const all: Own[] = [];
  for (const media of work.request.media) {
    const own = await upload(work, itemOf(media), byOf(media));
    if (isUploadFailed(own)) return own;
    all.push(own);
  }
  return all;
};
