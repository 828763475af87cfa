import { createHash } from 'node:crypto';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type {
  Checkpoint,
  Json,
  PublishMedia,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
  ReconcileOutcome,
} from '#contracts/ports/platform.ts';
import { integerIn, listIn, textIn } from '../shared/members.ts';
import { type Failed, namedInstant } from '../shared/outcomes.ts';
import { beforeBoundary, failureOf, type NetworkAnswer, type NotOk, undecidedBy } from './errors.ts';
import type { Bound } from './network.ts';
import { pageByCursor, timestampOf } from './own-posts.ts';
import { isUploadFailed, type Look, type Uploader, type UploadItem, upload } from './upload.ts';

/**
 * Containers: what a network makes of a post, and of each file of a carousel, before it publishes it. A container is
 * invisible, ends after 24 hours, and is published once. The network fetches the files from their addresses.
 */

export type MadeContainer = { readonly id: string };

export interface ContainerWork {
  readonly bound: Bound;
  readonly subject: NetworkCall['subject'];
  /** The account, by its id on the network. */
  readonly user: string;
  readonly signal: AbortSignal;
}

/** Parameters of the call that makes a container. A file stands for its address, which ends before the file does. */
export type ContainerFields = Readonly<Record<string, string | PublishMedia>>;

export interface ContainedPost {
  /** Of a carousel: each is ready before the whole is made. */
  readonly children: readonly ContainerFields[];
  /** @param children containers, by their ids */
  whole(children: readonly string[]): ContainerFields;
}

export type ContainerStatus =
  | { readonly kind: 'finished' | 'working' | 'published' | 'gone' }
  /** It can never be published. `code`: the network's word. */
  | { readonly kind: 'broken'; readonly code: string };

export interface ContainerForms {
  /** Makes nothing visible, so it may be made again. */
  make(work: ContainerWork, fields: Readonly<Record<string, string>>): Promise<MadeContainer | NotOk>;
  statusOf(work: Omit<ContainerWork, 'user'>, id: string): Promise<ContainerStatus | NotOk>;
  /** So many looks may miss what was made a moment ago; then it is made anew, or published as it is. */
  readonly unfound: { readonly looks: number; readonly then: 'anew' | 'publish' };
  /** For people: what a container that broke says. */
  said(code: string): string;
  /** What another container may not meet, of the network's code: trouble of its own servers, of the way to the file. */
  readonly mayPass: RegExp;
  /** Containers of one attempt at most, where each breaks so. */
  readonly maxBuilds: number;
}

const containerMs = 86_400_000;
/** The network may begin to fetch a file some time after the call. */
const addressMs = 6 * 3_600_000;
/** Texts and pictures are ready within seconds. */
const [everyMs, everyMsOfVideo] = [2_000, 10_000];
const betweenBuildsMs = 5_000;

const hashOf = (content: Json): string => createHash('sha256').update(JSON.stringify(content)).digest('hex');

interface Making extends UploadItem {
  readonly file: PublishMedia | null;
  readonly fields: ContainerFields;
}

const isFile = (value: string | PublishMedia): value is PublishMedia => typeof value !== 'string';

/** Its name and its content tell it from others of its post. */
const making = (name: string, fields: ContainerFields): Making => {
  const file = Object.values(fields).find(isFile) ?? null;
  const content = Object.entries(fields).map(([field, value]) => [field, isFile(value) ? value.sha256 : value]);
  return { ...{ name, mediaId: file?.mediaId ?? null, bytes: 0, file, fields }, sha256: hashOf(content) };
};

const addressed = async (fields: ContainerFields): Promise<Readonly<Record<string, string>>> => {
  const all: Record<string, string> = {};
  for (const [field, value] of Object.entries(fields)) all[field] = isFile(value) ? await value.url(addressMs) : value;
  return all;
};

const makerOf = (forms: ContainerForms, work: ContainerWork, { file }: Making): Uploader<MadeContainer, Making> => {
  const broken = (code: string): Look => ({ kind: 'broken', code, said: forms.said(code) });
  let missed = 0;
  return {
    everyMs: file?.kind === 'video' ? everyMsOfVideo : everyMs,
    start: async ({ fields }) => {
      const own = await forms.make(work, await addressed(fields));
      if ('kind' in own) return own;
      return { kind: 'started', own, until: new Date(work.bound.clock() + containerMs).toISOString() };
    },
    look: async ({ id }): Promise<Look | NotOk> => {
      const status = await forms.statusOf(work, id);
      switch (status.kind) {
        case 'finished':
        case 'published':
          return { kind: 'ready' };
        case 'broken':
          return broken(status.code);
        case 'gone':
          missed += 1;
          if (missed < forms.unfound.looks) return { kind: 'wait', ms: null };
          return forms.unfound.then === 'publish' ? { kind: 'ready' } : broken('EXPIRED');
        case 'working':
          return { kind: 'wait', ms: null };
        default:
          return status;
      }
    },
  };
};

/** All children of a container are ready before it is made, and then it is itself. @param waitMs that each may take */
export const built = async (
  forms: ContainerForms,
  work: ContainerWork,
  { children, whole }: ContainedPost,
  { checkpoint, checkpoints }: Pick<PublishSteps, 'checkpoint'> & Pick<PublishRequest, 'checkpoints'>,
  waitMs = 600_000,
): Promise<MadeContainer | Failed> => {
  const { bound, signal } = work;
  const request = { checkpoints };
  const ready = (one: Making): Promise<MadeContainer | Failed> =>
    upload({ bound, request, steps: { checkpoint, signal }, waitMs }, one, makerOf(forms, work, one));
  const ids: string[] = [];
  for (const [place, fields] of children.entries()) {
    const child = await ready(making(`child ${place}`, fields));
    if (isUploadFailed(child)) return child;
    ids.push(child.id);
  }
  return ready(making('post', whole(ids)));
};

/**
 * The same, made anew where another may go well: of a carousel the child that broke alone, and where the parent broke, all of
 * them. @param former checkpoints that it goes on from
 */
const readyContainer = async (
  forms: ContainerForms,
  work: ContainerWork,
  post: ContainedPost,
  steps: PublishSteps,
  former: readonly Checkpoint[],
): Promise<MadeContainer | Failed> => {
  let known = [...former];
  const checkpoint: PublishSteps['checkpoint'] = async (step, data) => {
    await steps.checkpoint(step, data);
    known.push({ attempt: 0, step, data, deadline: null });
  };
  for (let build = 1; ; build += 1) {
    const ready = await built(forms, work, post, { checkpoint, checkpoints: known });
    if (!isUploadFailed(ready) || build >= forms.maxBuilds) return ready;
    if (ready.kind !== 'failed' || !forms.mayPass.test(ready.failure.platformCode ?? '')) return ready;
    if (ready.failure.mediaId === null) known = [];
    await work.bound.pause(betweenBuildsMs, work.signal);
  }
};

/** What `steps.boundary(` is given. @param content what tells its post from others */
export const containerCrossing = (content: Json, container: string, now: number): Json => ({
  ...{ at: new Date(now).toISOString(), contentHash: hashOf(content), container },
});

/** The container of a boundary; null: another adapter wrote it. */
const containerIn = (data: Json): string | null => textIn(data, 'container');
const crossedAt = (data: Json | undefined): number => Date.parse(textIn(data, 'at') ?? '');

export interface Chosen extends MadeContainer {
  readonly kind: 'container';
  /** A call with it was lost, so that a refusal may mean that it is out. */
  readonly wasLost: boolean;
}

type Published = Extract<PublishOutcome, { readonly kind: 'published' }>;

interface Choice {
  readonly post: ContainedPost;
  /** Why the network takes no post now; null: it takes one. */
  none(): Promise<Failed | null>;
  /** The post of a container that was published. @param since milliseconds since the epoch */
  publishedAs(since: number): Promise<ReconcileOutcome>;
}

/** Of one post: one that the network refuses this often is refused in earnest. */
const maxContainers = 4;

/**
 * The container of this attempt. One whose call was lost is used again as long as it could be published: it is out at most
 * once, and another one beside it might be out twice. One that the network refused, which then made nothing, is replaced.
 */
export const chosenContainer = async (
  forms: ContainerForms,
  work: ContainerWork,
  { checkpoints }: Pick<PublishRequest, 'checkpoints'>,
  steps: PublishSteps,
  { post, none, publishedAs }: Choice,
): Promise<Chosen | Published | Failed> => {
  const build = async (former: readonly Checkpoint[]): Promise<Chosen | Failed> => {
    const why = await none();
    work.signal.throwIfAborted();
    const ready = why ?? (await readyContainer(forms, work, post, steps, former));
    return 'kind' in ready ? ready : { kind: 'container', id: ready.id, wasLost: false };
  };
  const crossings = checkpoints.filter(({ step }) => step === 'boundary');
  const id = containerIn(crossings.at(-1)?.data ?? null);
  if (id === null) return build(checkpoints);
  const [first, ...others] = crossings.filter(({ data }) => containerIn(data) === id);
  const wasLost = [first, ...others].some((one) => one?.madeNothing !== true);
  const status = await forms.statusOf(work, id);
  work.signal.throwIfAborted();
  switch (status.kind) {
    case 'published': {
      const found = await publishedAs(crossedAt(first?.data));
      return found.kind === 'present' ? { ...found, kind: 'published' } : { kind: 'container', id, wasLost: true };
    }
    case 'broken':
      return build([]);
    case 'working':
      return { kind: 'deferred', failure: failureOf('processing', null, null) };
    case 'finished':
    case 'gone': {
      const containers = new Set(crossings.map(({ data }) => containerIn(data))).size;
      return wasLost || containers >= maxContainers ? { kind: 'container', id, wasLost } : build([]);
    }
    default:
      return beforeBoundary(status, work.bound.clock());
  }
};

/** A container that was published by a call that was lost is refused as one that is not there. */
export const mayBeOut = (answer: NetworkAnswer, { wasLost }: Chosen): boolean =>
  wasLost && answer.kind === 'refused' && ['invalid_content', 'media', 'transient'].includes(answer.failure.category);

/** What became of the call with a container. @param content as it was given to `containerCrossing` */
export const reconcileContainer = async (
  forms: ContainerForms,
  work: Omit<ContainerWork, 'user'>,
  data: Json,
  content: Json,
  publishedAs: Choice['publishedAs'],
): Promise<ReconcileOutcome> => {
  const [at, container] = [crossedAt(data), containerIn(data)];
  // With another text the search would find the wrong post.
  const isOurs = container !== null && !Number.isNaN(at) && textIn(data, 'contentHash') === hashOf(content);
  if (!isOurs) return { kind: 'undecided' };
  const status = await forms.statusOf(work, container);
  switch (status.kind) {
    // A container is published once: the next attempt uses it again, so it is out at most once.
    case 'finished':
    case 'broken':
      return { kind: 'absent' };
    case 'working':
      return { kind: 'undecided' };
    case 'published':
    case 'gone':
      return publishedAs(at);
    default:
      return undecidedBy(status, work.bound.clock());
  }
};

/** How many posts a network takes of an account in a moving day: where it is asked, and what the answer calls it. */
export interface PostQuota {
  readonly path: string;
  readonly usage: string;
  readonly config: string;
  readonly what: 'posts' | 'replies';
  /** The list of what counts. */
  readonly list: string;
}

/** The answer is advice: without one the call that publishes is refused. */
const holdsUp = (answer: NotOk): boolean =>
  ['lapsed', 'resting', 'unavailable'].includes(answer.kind) ||
  (answer.kind === 'refused' && ['lapsed', 'limited'].includes(answer.row.means));

/** Posts that no app made do not count, so the slot may be a later one: it is asked for again then. */
const [soonestMs, latestMs] = [900_000, 3_600_000];

/** When as many posts leave the window as are too many: what leaves it within the hour is asked for. */
const slotOf = async (
  { bound, subject }: ContainerWork,
  list: string,
  seconds: number,
  tooMany: number,
): Promise<number> => {
  const now = bound.clock();
  const from = now - seconds * 1_000;
  const answer = await pageByCursor(bound, subject, list, 'id,timestamp', { from, until: from + latestMs })(null);
  const times = answer.kind === 'ok' ? listIn(answer.body, 'data').map(timestampOf) : [];
  const leaves = times.filter((one) => one >= from).sort((a, b) => a - b)[tooMany];
  return leaves === undefined ? now + latestMs : Math.max(leaves + seconds * 1_000, now + soonestMs);
};

/** Asked before a post is prepared, so that one too many waits for its slot instead of failing. Null: one more is taken. */
export const noneLeft = async (
  work: ContainerWork,
  { path, usage, config, what, list }: PostQuota,
): Promise<Failed | null> => {
  const { bound, subject, signal } = work;
  const ask = { method: 'GET', path, query: { fields: `${usage},${config}` } } as const;
  const answer = await bound.client.call(subject, ask, signal);
  if (answer.kind !== 'ok') return holdsUp(answer) ? beforeBoundary(answer, bound.clock()) : null;
  const [said = {}] = listIn(answer.body, 'data');
  const [used, limit] = [integerIn(said, usage), integerIn(said[config], 'quota_total')];
  const seconds = integerIn(said[config], 'quota_duration') ?? 86_400;
  if (used === null || limit === null || limit < 1 || seconds < 1 || seconds > 31 * 86_400) return null;
  const name = `${what} in ${Math.round(seconds / 3_600)} hours`;
  const slot = used < limit ? null : namedInstant(await slotOf(work, list, seconds, used - limit));
  // The cadence counts posts.
  if (what === 'posts') bound.onLimits?.(subject.accountId, [{ name, seconds, limit, used, resetsAt: slot }]);
  if (slot === null) return null;
  const failure = failureOf('limited', 'quota', `${used} of ${limit} ${name} are out`);
  return { kind: 'rate_limited', retryAt: slot, failure };
};

/**
 * The network alone knows it. Without an answer, and where no call can be made, the post is out all the same, and its figures
 * bring the permalink. @param path of the post
 */
export const permalinkAt = async (
  { client }: Pick<Bound, 'client'>,
  subject: NetworkCall['subject'],
  path: string,
  signal: AbortSignal,
): Promise<string | null> => {
  const ask = { method: 'GET', path, query: { fields: 'id,permalink' } } as const;
  const answer = await client.call(subject, ask, signal).catch(() => null);
  return answer?.kind === 'ok' ? textIn(answer.body, 'permalink') : null;
};
