import { setImmediate } from 'node:timers/promises';
import { Rejection } from '#domain/decider.ts';
import { bodyIssues, emptyIssues, gateIssues, type PostAssets } from '#domain/post/compose.ts';
import { contentHashOf } from '#domain/post/content.ts';
import type { LivePost } from '#domain/post/post.ts';
import type { Submission } from '#domain/post/post-approval.ts';
import { type Ruled, ruledOn } from '#domain/post/preview.ts';
import { considerPlan, type Destination, type RequestedTime, scheduleIssues } from '#domain/post/scheduling.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Actor } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import { maxPostBytes, type Plan, type PostBody } from '#schemas/post.ts';
import { callsFor, type TimedAccount } from '../cadence/check.ts';
import {
  type Choose,
  checkCampaign,
  checkOwnClient,
  draftMediaRefusals,
  type LiveCampaign,
  mediaRefusals,
  type Selected,
  type SelectedClient,
} from './accounts.ts';

/**
 * The gates between a composed body and the post's stream, for the posts of callers and for the copies that the service
 * makes of recycled posts. A check yields each reason for which it refuses, in order: a
 * command is refused with the code of the first, and names the faults of all.
 */

function* invalid(errors: readonly Issue[]): Generator<Rejection> {
  if (errors.length > 0) yield new Rejection('validation_failed', 'The input is not valid.', { errors });
}

const bytesOf = (stored: unknown): number => Buffer.byteLength(JSON.stringify(stored));

/** Of the object that the body and the plan are stored in. */
const envelopeBytes = '{"body":,"plan":}'.length;

const sizeIssues = (bytes: number): readonly Issue[] => {
  const message = `the post has ${bytes} bytes as stored, at most ${maxPostBytes} are allowed`;
  return bytes > maxPostBytes ? [{ path: '', code: 'too_many_bytes', message }] : [];
};

/** For posts of at least this many bytes, the texts are counted for one network in each turn of the event loop. */
export const slowToCount = 32 * 1024;

const networkIssues = async (
  body: PostBody,
  destinations: readonly Destination[],
  assets: PostAssets,
  bytes: number,
): Promise<readonly Issue[]> => {
  if (bytes < slowToCount) return gateIssues(body, destinations, assets);
  const issues: Issue[] = [];
  for (const ofNetwork of Map.groupBy(destinations, ({ platform }) => platform).values()) {
    issues.push(...gateIssues(body, ofNetwork, assets));
    await setImmediate();
  }
  return issues;
};

/** The rules of a client hold for its posts, and for every post that goes to its accounts. */
const ruledIssues = async (
  body: PostBody,
  { clients, destinations }: Selected,
  clientId: string,
  bytes: number,
): Promise<Ruled> => {
  const rules = new Map(clients.map((one) => [one.id, one.rules]));
  const known = new Map<string, Ruled>();
  const [errors, warnings]: [Issue[], Issue[]] = [[], []];
  for (const { accountId, platform, clientId: ofAccount } of destinations) {
    const wanted = [...new Set([clientId, ofAccount])].map((id) => rules.get(id) ?? null).filter((one) => one !== null);
    if (wanted.length === 0) continue;
    const key = `${platform} ${ofAccount}`;
    let ruled = known.get(key);
    if (ruled === undefined) {
      ruled = ruledOn(body, platform, wanted);
      known.set(key, ruled);
      if (bytes >= slowToCount) await setImmediate();
    }
    errors.push(...ruled.errors.map((one) => ({ ...one, accountId, platform })));
    warnings.push(...ruled.warnings.map((one) => ({ ...one, accountId, platform })));
  }
  return { errors, warnings };
};

/** What the checks read, each thing once. */
export interface PostReads {
  readonly client: (id: string) => Promise<SelectedClient | null>;
  readonly campaign: (id: string) => Promise<LiveCampaign | null>;
  /** The assets of the workspace that the body names. */
  readonly assets: (body: PostBody) => Promise<PostAssets>;
  /** Why accounts cannot publish at these times; null: they can. The present times of `own` targets do not count. */
  readonly cadence: (wanted: readonly TimedAccount[], own: ReadonlySet<string>) => Promise<Rejection | null>;
}

/** Whose post it is, and when it is composed. */
export interface Composing {
  readonly author: {
    readonly actor: Actor;
    /** The role of the author requires an approval, whatever the clients do. */
    readonly needsApproval: boolean;
  };
  /** ISO 8601. */
  readonly now: string;
}

export interface ComposedPost<Reads> {
  readonly id: string;
  readonly clientId: string;
  /** With the campaign, where the caller names one: that of a stored post was checked when it was named. */
  readonly body: PostBody;
  readonly planNumber: number;
  /** The post that is revised. One that a person was asked about needs an approval again, also when its author revises it. */
  readonly revised?: Pick<LivePost, 'approval' | 'plan'>;
  /** The targets keep the times that they have: nobody goes out more often. Default: no. */
  readonly keepsTimes?: boolean;
  /** The targets of the plan. */
  readonly choose: Choose<Reads>;
  /** By account, instead of the times that the schedule gives. */
  readonly times?: ReadonlyMap<string, RequestedTime>;
  /** Learns what the checks found out, once all of them have passed. */
  readonly onChecked?: (found: Checked) => void;
}

/** Checks only the form of a draft: no jitter, no quota, no rules of networks. */
export async function* checksOfDraft(reads: PostReads, clientId: string, body: PostBody): AsyncGenerator<Rejection> {
  const tooLarge = sizeIssues(bytesOf(body));
  yield* invalid(tooLarge);
  if (tooLarge.length > 0) return;
  yield* invalid(bodyIssues(body, clientId));
  yield* checkOwnClient(reads, clientId);
  yield* checkCampaign(reads, clientId, body);
  yield* draftMediaRefusals(body, clientId, await reads.assets(body));
}

/** What the checks of a post that is to be published found out. */
export interface Checked extends Selected {
  readonly plan: Plan;
  readonly assets: PostAssets;
  /** Whether the client or the caller's role requires approval. */
  readonly isHeld: boolean;
  /** Of the body and its plan, as stored. */
  readonly bytes: number;
  /** The rules of their networks that accounts break. */
  readonly gated: readonly Issue[];
  /** What the rules of the clients warn of, for each account. */
  readonly warned: readonly Issue[];
}

/**
 * Every check of a post that is to be published; all or nothing. Media are checked before the rules of the networks,
 * which need to know them. Null where the body is too large for the checks.
 */
export async function* checksOf<Reads extends PostReads>(
  { author, now }: Composing,
  reads: Reads,
  { id, clientId, body, planNumber, choose, times, keepsTimes = false }: ComposedPost<Reads>,
): AsyncGenerator<Rejection, Checked | null> {
  // Before any check reads the texts: the time of the checks grows with their size.
  const bodyBytes = bytesOf(body);
  const tooLarge = sizeIssues(bodyBytes);
  yield* invalid(tooLarge);
  if (tooLarge.length > 0) return null;
  yield* invalid(bodyIssues(body, clientId));
  // Both are read at the same time; problems of the accounts are reported first.
  const asked = reads.assets(body);
  asked.catch(() => undefined);
  const selected = yield* choose(reads, clientId, body);
  yield* checkCampaign(reads, clientId, body);
  const { clients, destinations } = selected;
  const { schedule, timezone, scheduleMode } = body;
  const isTimed = scheduleIssues(schedule, timezone).length === 0;
  const { plan: considered, refusals } = considerPlan({
    postId: id,
    number: planNumber,
    destinations,
    // A schedule that was refused above gives no times.
    ...(isTimed ? { schedule, timezone } : { schedule: { ...schedule, type: 'now' }, timezone: 'UTC' }),
    scheduleMode,
    variants: body.variants,
    now,
    ...(times === undefined ? {} : { times }),
  });
  yield* refusals;
  const plan = withLateRule(considered, clients);
  const bytes = envelopeBytes + bodyBytes + bytesOf(plan);
  yield* invalid(sizeIssues(bytes));
  const { empty, threadless } = emptyIssues(body, destinations);
  yield* invalid(empty);
  if (threadless.length > 0) {
    const detail = 'Networks without threads need content or media of their own.';
    yield new Rejection('thread_not_supported', detail, { errors: threadless });
  }
  const assets = await asked;
  yield* mediaRefusals(body, destinations, assets);
  const gated = await networkIssues(body, destinations, assets, bytes);
  yield* invalid(gated);
  const ruled = await ruledIssues(body, selected, clientId, bytes);
  yield* invalid(ruled.errors);
  if (isTimed && !keepsTimes) {
    const often = await oftenRefusal(reads, body, selected, plan);
    if (often !== null) yield often;
  }
  const isHeld = author.needsApproval || clients.some((one) => one.approvalRequired);
  return { ...selected, plan, assets, isHeld, bytes, gated, warned: ruled.warnings };
}

/** The rule of a target's client as it is now: what waits for an approval keeps it. */
const withLateRule = (plan: Plan, clients: Selected['clients']): Plan => {
  const failing = new Set(clients.filter(({ failsLate }) => failsLate).map(({ id }) => id));
  if (failing.size === 0) return plan;
  const targets = plan.targets.map((one) =>
    failing.has(one.clientId) ? { ...one, approvalLate: 'fail' as const } : one,
  );
  return { ...plan, targets };
};

/** Accounts that would publish too often; the post's own targets leave their former times. */
const oftenRefusal = (
  reads: Pick<PostReads, 'cadence'>,
  body: PostBody,
  { accounts }: Selected,
  { targets }: Plan,
): Promise<Rejection | null> => {
  const known = new Map(accounts.map((account) => [account.id, account]));
  const calls = callsFor(body);
  const wanted = targets.flatMap(({ accountId, platform, dueAt }) => {
    const account = known.get(accountId);
    return account === undefined ? [] : [{ account, dueAt, calls: calls(platform) }];
  });
  return reads.cadence(wanted, new Set(targets.map(({ targetId }) => targetId)));
};

export interface PlannedPost {
  readonly plan: Plan;
  /** Absent: no approval is required. */
  readonly submission?: Submission;
}

/** Every reason for which the checks refuse, and what they found out. */
export const allOf = async <Found>(checks: AsyncGenerator<Rejection, Found>) => {
  const refusals: Rejection[] = [];
  for (;;) {
    const { done, value } = await checks.next();
    if (done === true) return { refusals, found: value };
    refusals.push(value);
  }
};

/** @throws Rejection for all of `checksOf` */
export const planPost = async <Reads extends PostReads>(
  composing: Composing,
  reads: Reads,
  post: ComposedPost<Reads>,
): Promise<PlannedPost> => {
  const { refusals, found: value } = await allOf(checksOf(composing, reads, post));
  const refusal = Rejection.ofAll(refusals);
  if (refusal !== null) throw refusal;
  if (value === null) throw new BrokenInvariant('a post that no check refuses has a plan');
  post.onChecked?.(value);
  const { plan, assets, isHeld } = value;
  const { revised } = post;
  if (!isHeld && (revised?.approval ?? null) === null) return { plan };
  // Of all accounts of the post, also those that a revise cannot reach any more: other times alone leave the hash.
  const { targets } = revised?.plan ?? plan;
  const hash = contentHashOf(post.body, targets, (id) => assets.get(id)?.sha256 ?? null);
  return { plan, submission: { postId: post.id, hash, submittedBy: composing.author.actor } };
};
