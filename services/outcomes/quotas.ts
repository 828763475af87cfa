import type { Pool } from 'pg';
import { monthAfter, monthBegin, monthOf } from '#domain/zones.ts';
import { type PostingRules, postingRulesOf, workspacesWithQuota } from '#projections/queries/posting-rules.ts';
import { countedTargets } from '#projections/queries/quota-targets.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import type { PostEvent } from '#schemas/post.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { inGroups } from '#services/workflows/fan-out.ts';
import { adoptTargets } from '#services/workflows/quota/adopt.ts';
import { abandonMs, sweepMonth, tendPlaces } from '#services/workflows/quota/give-back.ts';
import { endLook, notedMonths } from '#services/workflows/quota/noted-months.ts';

/** Places of quotas that the api has not given back, or that a crash left behind. */

/** Events after which a target may need its place no longer, or another one. */
export const placeTypes: readonly (TargetEvent['type'] | PostEvent['type'])[] = [
  'TargetFailed',
  'TargetApprovalLapsed',
  'TargetCanceled',
  'TargetOutcomeSettled',
  'TargetReleased',
  'TargetRescheduled',
  'TargetRevised',
  'TargetUndoFailed',
  'TargetNativeTimeChanged',
  'TargetNativeRevised',
  'PostTargetsSkipped',
];

const targetsOf = ({ stream, data }: DecodedEvent): readonly string[] =>
  stream.startsWith('target-')
    ? [stream.slice('target-'.length)]
    : ((data as { readonly targetIds?: readonly string[] }).targetIds ?? []);

/** Brings the places of the targets of these events to where they are due. Costs a workspace without a quota nothing. */
export const tendPlacesOf = async (
  store: DomainStore,
  pool: Pool,
  events: readonly DecodedEvent[],
  now: () => number = Date.now,
): Promise<void> => {
  const byPost = Map.groupBy(
    events.filter(({ type }) => placeTypes.some((one) => one === type)),
    // The partition key of a post's and of a target's event is the post's id.
    ({ metadata }) => metadata.partitionKey,
  );
  await inGroups([...byPost], async ([postId, some]) => {
    const last = some.at(-1);
    if (last === undefined) return;
    const rules = await postingRulesOf(pool, last.metadata.workspaceId);
    if (rules.quotaRevision === null) return;
    const context = serviceContext('outcomes', causedBy(last), now());
    await tendPlaces({ store, context, rules }, postId, [...new Set(some.flatMap(targetsOf))]);
  });
};

/** What this process has swept of one workspace under the quota of that revision. */
interface Swept {
  readonly quotaRevision: number;
  /** By month: the revision up to which every reservation is settled. */
  readonly settled: Map<string, number>;
  rounds: number;
}

export type QuotaProgress = Map<string, Swept>;

/**
 * Rounds of a process that look at every place of a quota that was set: a consumer that did not know of the quota yet,
 * or a build that notes no months, may have left some behind. Later rounds read only the months that were noted.
 */
const fullRounds = 2;
/** Months from the former one on: a post is scheduled at most 18 months ahead. */
const sweptMonths = 21;

/** Noted months that a round looks at; the next round continues with those that have waited longest. */
const maxNoted = 10_000;

interface QuotaSweep {
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly now?: () => number;
  /** Default: nothing was swept before. */
  readonly quotas?: QuotaProgress;
  /** Default: as the rows of the database have them. */
  readonly sandboxClocks?: SandboxClocks;
}

/**
 * Sweeps every workspace that has, or had, a quota. It first gives places to targets that were due before the quota was
 * set, and then settles old reservations. A reservation that is settled is not looked at again by this process: events
 * of its target lead the consumer to it.
 * @param alone runs one workspace, so that its failure delays no other
 */
export const sweepQuotas = async (
  { store, pool, now = Date.now, quotas = new Map(), sandboxClocks = new SandboxClocks(pool) }: QuotaSweep,
  alone: (id: string, work: () => Promise<void>) => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  // Younger places may still get the appends that they were taken for.
  const before = new Date(now() - abandonMs);
  await sandboxClocks.read();
  const noted = Map.groupBy(await notedMonths(pool, before, maxNoted), ({ workspaceId }) => workspaceId);
  let after: string | undefined = '00000000-0000-0000-0000-000000000000';
  while (after !== undefined) {
    const workspaces: Awaited<ReturnType<typeof workspacesWithQuota>> = await workspacesWithQuota(pool, after);
    for (const { id, ...rules } of workspaces) {
      if (signal.aborted) return;
      const known = quotas.get(id);
      const swept: Swept =
        known?.quotaRevision === rules.quotaRevision
          ? known
          : { quotaRevision: rules.quotaRevision, settled: new Map(), rounds: 0 };
      const months = (noted.get(id) ?? []).map(({ month }) => month);
      if (swept.rounds >= fullRounds && months.length === 0) continue;
      await alone(id, async () => {
        const aheadMs = sandboxClocks.latest(id);
        await sweepWorkspace(
          { store, pool, now: () => now() + aheadMs, aheadMs, before },
          { id, rules, swept, months },
          signal,
        );
        if (!signal.aborted) quotas.set(id, swept);
      });
    }
    after = workspaces.at(-1)?.id;
  }
};

interface SweptWorkspace {
  readonly id: string;
  readonly rules: PostingRules;
  readonly swept: Swept;
  /** That were noted. */
  readonly months: readonly string[];
}

interface SweptTime {
  /** By the clock of the workspace, which is `aheadMs` ahead of real time. */
  readonly now: () => number;
  readonly aheadMs: number;
  /** In real time. */
  readonly before: Date;
}

const sweepWorkspace = async (
  { store, pool, now, aheadMs, before }: SweptTime & Pick<QuotaSweep, 'store' | 'pool'>,
  { id, rules, swept, months }: SweptWorkspace,
  signal: AbortSignal,
): Promise<void> => {
  const cause = { workspaceId: id, correlationId: uuidv7(), causationId: `workspace-${id}` };
  const by = { store, context: serviceContext('sweeper', cause, now(), aheadMs), rules };
  const isFull = swept.rounds < fullRounds;
  const current = monthOf(by.context.now, rules.timezone);
  if (isFull && rules.quota !== null) {
    const from = monthBegin(current, rules.timezone);
    await adoptTargets(by, (last) => countedTargets(pool, id, from, last), signal);
  }
  const all = isFull ? Array.from({ length: sweptMonths }, (_, at) => monthAfter(current, at - 1)) : [];
  for (const month of new Set([...all, ...months])) {
    if (signal.aborted) return;
    const from = isFull ? -1 : (swept.settled.get(month) ?? -1);
    const { settled, revision } = await sweepMonth(by, month, { now: now(), settled: from });
    swept.settled.set(month, settled);
    if (months.includes(month)) await endLook(pool, { workspaceId: id, month }, settled >= revision, before);
  }
  swept.rounds += 1;
};
