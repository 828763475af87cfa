import { setImmediate } from 'node:timers/promises';
import { within } from '#contracts/base/pause.ts';
import { campaign } from '#domain/campaign.ts';
import { grantsOf } from '#domain/platforms/index.ts';
import { ruleIssues } from '#domain/post/compose.ts';
import { contentFor } from '#domain/post/content.ts';
import { type LivePost, newestBody, type PostState } from '#domain/post/post.ts';
import {
  accountWarnings,
  type ComposedTarget,
  type ComposedWarning,
  composedWarnings,
  contentWarnings,
  type PreviewWarning,
  retryWarnings,
  timeWarnings,
  unusedAltTexts,
  warning,
} from '#domain/post/preview.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import type { TargetState } from '#domain/post-target/target.ts';
import { rowOf } from '#projections/engine/model.ts';
import { posts, renderPost, withTargets } from '#projections/models/posts.ts';
import { postTargets, renderTarget, type TargetRow } from '#projections/models/targets.ts';
import { type SameText, sameTexts } from '#projections/queries/same-texts.ts';
import type { TargetWithContent } from '#projections/queries/target-queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { BodyNotes } from '#schemas/http/clean.ts';
import type { Warning } from '#schemas/http/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { allOf, type Checked, checksOf, slowToCount } from '#services/workflows/posts/compose.ts';
import { withinLimit } from '../call/access.ts';
import type { Call } from '../call/operation.ts';
import { composingOf, type Reads, select } from './checks.ts';

/** What the author of a checked post should know of it at this moment, for each account. */

type Foreseer = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'behind'>;

interface Foreseen {
  readonly destination: Destination;
  /** Null: a network on which the client has no account. */
  readonly target: PlannedTarget | null;
  /** Those with `willFail` first. */
  readonly warnings: readonly PreviewWarning[];
}

interface Foreseeing {
  /** The post whose own targets are no duplicates; null: it does not exist yet. */
  readonly postId: string | null;
  /** Whether posts are looked for that the caller stored a moment ago: it may wait for the read models. */
  readonly waits: boolean;
}

export const foresee = async (
  call: Foreseer,
  body: PostBody,
  found: Checked,
  looking: Foreseeing,
): Promise<readonly Foreseen[]> => {
  const { plan, accounts, clients } = found;
  const byAccount = new Map(found.destinations.map((one) => [one.accountId, one]));
  const planned = plan.targets.flatMap((target) => {
    const destination = byAccount.get(target.accountId);
    return destination === undefined ? [] : [{ target, destination }];
  });
  const unconnected = unconnectedOf(body, clients[0]?.id ?? '', found.destinations);
  const destinations = [...planned.map((one) => one.destination), ...unconnected];
  const ofContent = await forEachContent(body, destinations, found, (destination, errors) =>
    contentWarnings(body, destination, found.assets, errors),
  );
  const same = await sameTextsOf(call, body, planned, looking);
  const retrying = new Set(clients.filter((one) => one.retriesWhenAbsent).map(({ id }) => id));
  const byId = new Map(accounts.map((one) => [one.id, one]));
  const foreseen = (destination: Destination, target: PlannedTarget | null, more: readonly PreviewWarning[]) => {
    const first = more.filter((one) => one.willFail);
    const last = more.filter((one) => !one.willFail);
    return { destination, target, warnings: [...first, ...ofContent(destination), ...last] };
  };
  return [
    ...planned.map(({ target, destination }) => {
      const again = same.get(target.accountId);
      return foreseen(destination, target, [
        ...found.warned
          .filter(({ accountId }) => accountId === target.accountId)
          .map(({ code, path, message }) => warning(code, path, message)),
        ...accountWarnings(byId.get(target.accountId)?.status ?? ''),
        ...(again === undefined ? [] : [duplicate(again)]),
        ...(retrying.has(target.clientId) ? retryWarnings(target, byId.get(target.accountId)?.externalId ?? '') : []),
      ]);
    }),
    ...unconnected.map((destination) => foreseen(destination, null, [noAccount(destination)])),
  ];
};

/**
 * What follows from the content that each destination gets, computed once for accounts of one network that allow the
 * same. For large bodies, one network in each turn of the event loop. The checks have found no fault with accounts that
 * `gated` does not name.
 * @param compute gets the rules of its network that the destination breaks
 */
export const forEachContent = async <Value>(
  body: PostBody,
  destinations: readonly Destination[],
  { assets, gated, bytes }: Checked,
  compute: (destination: Destination, errors: readonly Issue[]) => Value,
): Promise<(destination: Destination) => Value> => {
  const faulty = new Set(gated.map(({ accountId }) => accountId));
  const keyOf = ({ platform, scopes }: Destination): string => `${platform} ${grantsOf(platform, scopes)}`;
  const known = new Map<string, { readonly value: Value }>();
  for (const destination of destinations) {
    const key = keyOf(destination);
    if (known.has(key)) continue;
    const { accountId } = destination;
    const isChecked = accountId !== '' && !faulty.has(accountId);
    const errors = isChecked ? [] : [...ruleIssues(body, destination, assets)];
    known.set(key, { value: compute(destination, errors) });
    if (bytes >= slowToCount) await setImmediate();
  }
  return (destination) => {
    const found = known.get(keyOf(destination));
    if (found === undefined) throw new BrokenInvariant('every destination of a preview has content');
    return found.value;
  };
};

/** Networks that narrow a group and on which its client has no account. */
const unconnectedOf = (
  { targetSelection: { mode, platforms } }: PostBody,
  clientId: string,
  known: readonly Destination[],
): readonly Destination[] =>
  (mode === 'group' ? (platforms ?? []) : [])
    .filter((platform) => !known.some((one) => one.platform === platform))
    .map((platform) => ({
      accountId: '',
      clientId,
      platform,
      accountTimezone: null,
      clientTimezone: null,
      scopes: [],
    }));

const noAccount = ({ platform }: Destination): PreviewWarning =>
  warning('no_account', '/targets/platforms', `no account of the client is on ${platform}`);

const duplicate = ({ postId, dueAt }: SameText): PreviewWarning =>
  warning('duplicate_text', '/content', `another post with the same text is due on this account at ${dueAt}`, {
    postId,
  });

/** Null after the year 9999, for which neither the contract nor Postgres has a form: a delay may pass its end. */
export const writable = (instant: string): string | null => (/^\d{4}-/.test(instant) ? instant : null);

interface Planned {
  readonly target: PlannedTarget;
  readonly destination: Destination;
}

/** By account. */
const sameTextsOf = async (
  call: Foreseer,
  body: PostBody,
  planned: readonly Planned[],
  { postId, waits }: Foreseeing,
): Promise<ReadonlyMap<string, SameText>> => {
  const { deps, workspaceId, principal } = call;
  const asked = planned
    .filter(({ target }) => writable(target.dueAt) !== null)
    .map(({ target: { accountId, platform, dueAt } }) => ({ accountId, platform, dueAt }));
  const texts = [...new Set(asked.map(({ platform }) => platform))].flatMap((platform) => {
    const text = contentFor(body, platform).segments[0].content;
    return text === '' ? [] : [{ platform, text }];
  });
  if (texts.length === 0) return new Map();
  if (waits) await call.behind(['posts']);
  const among = { workspaceId, postId, ...withinLimit(principal) };
  const found = await sameTexts(deps.knex, among, texts, asked);
  return new Map(found.map((one) => [one.accountId, one]));
};

/** Answers to commands, rendered from stored events by the read models' own folds: a later GET says the same. */

const fault = (what: string): Error => new Error(`the events make no ${what}`);

/** The row of a target right after the fan-out: its first events are the plan's entry, stored when the plan was. */
const plannedRow = (
  { planRevision, planHeld }: LivePost,
  postId: string,
  scheduled: DecodedEvent,
  planned: PlannedTarget,
): TargetRow => {
  const first: DecodedEvent = {
    ...scheduled,
    stream: `target-${planned.targetId}`,
    type: 'TargetScheduled',
    data: { ...planned, postId, postRevision: planRevision },
    revision: 0,
  };
  const held: DecodedEvent = { ...first, type: 'TargetHeld', data: { postRevision: planRevision }, revision: 1 };
  const row = rowOf(postTargets, planHeld ? [first, held] : [first]);
  if (row === null) throw fault('target');
  return row;
};

const planEvent = ({ planRevision }: LivePost, events: readonly DecodedEvent[]): DecodedEvent | undefined =>
  events.find(({ revision }) => revision === planRevision);

/** A target of the post's plan, whether or not the fan-out has come to it; null where the plan does not hold it. */
export const plannedTarget = (
  postId: string,
  live: LivePost,
  events: readonly DecodedEvent[],
  targetId: string,
): TargetWithContent | null => {
  const scheduled = planEvent(live, events);
  const planned = live.plan.targets.find((one) => one.targetId === targetId);
  if (scheduled === undefined || planned === undefined) return null;
  // The post may have been revised since.
  const { body } = scheduled.data as { readonly body: PostBody };
  return { target: plannedRow(live, postId, scheduled, planned), body };
};

/** The post as these events of its stream leave it, with its targets as planned. */
export const answerPost = (postId: string, state: PostState, events: readonly DecodedEvent[]) => {
  const row = rowOf(posts, events);
  if (row === null) throw fault('post');
  const live = state.status === 'live' ? state : null;
  const scheduled = live === null ? undefined : planEvent(live, events);
  const targets =
    live === null || scheduled === undefined
      ? []
      : live.plan.targets.map((planned) => plannedRow(live, postId, scheduled, planned));
  return renderPost(withTargets(row, targets), targets);
};

/** The post and its targets as these events of their streams leave them. */
export const answerWithTargets = (
  events: readonly DecodedEvent[],
  targets: Iterable<Pick<Loaded<TargetState>, 'events'>>,
) => {
  const row = rowOf(posts, events);
  if (row === null) throw fault('post');
  const rows = Array.from(targets, (one) => rowOf(postTargets, one.events) ?? missing());
  return renderPost(withTargets(row, rows), rows);
};

const missing = (): never => {
  throw fault('target');
};

export const answerTarget = (events: readonly DecodedEvent[], postEvents: readonly DecodedEvent[]) => {
  const row = rowOf(postTargets, events) ?? missing();
  // Only the events up to the target's own revision: a later row drops the bodies that no target shows any more, and a
  // repeat of a call shows the target as it was.
  const post = rowOf(
    posts,
    postEvents.filter(({ revision }) => revision <= row.post_revision),
  );
  if (post === null) throw fault('target');
  return renderTarget(row, post.body);
};

/** A post as answers show it: a campaign that was deleted since is none. */
export const withLiveCampaign = async <Shown extends { readonly campaignId: string | null }>(
  { deps }: Pick<Call, 'deps'>,
  shown: Shown,
): Promise<Shown> => {
  if (shown.campaignId === null) return shown;
  const { state } = await deps.store.load(campaign, shown.campaignId);
  return state.status === 'deleted' ? { ...shown, campaignId: null } : shown;
};

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'behind' | 'now' | 'correlationId'>;

/** How long an answer waits for what warnings read, milliseconds; then it goes without them. */
const patienceMs = 500;

const ofNetworks = (foreseen: Awaited<ReturnType<typeof foresee>>): readonly ComposedWarning[] =>
  foreseen.flatMap(({ destination: { platform }, target, warnings }) =>
    warnings.map((one) => ({ ...one, platform, accountId: target?.accountId ?? null })),
  );

/** Warnings that differ in their account alone are one, which names what they have in common. */
const folded = (all: readonly ComposedWarning[]): readonly ComposedWarning[] => {
  const key = ({ code, path, message, mediaId, postId }: ComposedWarning) =>
    JSON.stringify([code, path, message, mediaId, postId]);
  const only = <T>(values: readonly T[]): T | null => {
    const [first, ...more] = new Set(values);
    return first === undefined || more.length > 0 ? null : first;
  };
  return [...Map.groupBy(all, key).values()].flatMap((some) => {
    const [first] = some;
    if (first === undefined) return [];
    const [platform, accountId] = [only(some.map((one) => one.platform)), only(some.map((one) => one.accountId))];
    const many = new Set(some.map((one) => one.accountId)).size;
    const message = many > 1 ? `${first.message} (${many} accounts)` : first.message;
    return [{ ...first, message, platform, accountId }];
  });
};

const shown = (id: string, base: string, { path, ...one }: ComposedWarning): Warning => {
  const { code, message, willFail } = one;
  const { platform, accountId, mediaId, postId } = one;
  return {
    ...{ code, id, message },
    ...(path === '' ? {} : { path: `${base}${path}` }),
    ...(platform === null ? {} : { platform }),
    ...(accountId === null ? {} : { accountId }),
    ...(willFail ? { willFail } : {}),
    ...(mediaId === null ? {} : { mediaId }),
    ...(postId === null ? {} : { postId }),
  };
};

interface WarnedPost {
  readonly id: string;
  readonly state: PostState;
  /** What this call sent of alt texts: the post keeps those of its own files. */
  readonly sent?: Pick<PostBody, 'mediaAltTexts'> | { readonly mediaAltTexts?: Readonly<Record<string, string>> };
  readonly notes: BodyNotes;
  /** Targets to which the command gave content or times. Absent: those of the plan. */
  readonly targets?: readonly ComposedTarget[];
  /** False: the targets keep their times. */
  readonly isTimed?: boolean;
  readonly replayed?: boolean;
}

/** The warnings of one command on one post. */
export class PostWarnings {
  readonly #call: Asking;
  #checked: Checked | null = null;
  #moment: Promise<readonly ComposedWarning[]> = Promise.resolve([]);

  constructor(call: Asking) {
    this.#call = call;
  }

  /**
   * Begins to read what the post meets at this moment, once its checks have passed: beside the append, because after it
   * the read models may know the post. Nothing that is read here can refuse the command. A body whose texts are slow to
   * count is counted once, by the checks.
   */
  begin(postId: string, body: PostBody, checked: Checked): void {
    this.#checked = checked;
    if (checked.bytes > slowToCount) return;
    this.#moment = this.#read(async () =>
      ofNetworks(await foresee(this.#call, body, checked, { postId, waits: false })),
    );
  }

  /** Of a draft, whose targets are not known: those that it would have now. */
  beginDraft(postId: string, clientId: string, body: PostBody, reads: Reads): void {
    if (JSON.stringify(body).length > slowToCount) return;
    const composed = { id: postId, clientId, body, planNumber: 1, choose: select };
    this.#moment = this.#read(async () => {
      const { found } = await allOf(checksOf(composingOf(this.#call), reads, composed));
      if (found === null) return [];
      this.#checked = found;
      return ofNetworks(await foresee(this.#call, body, found, { postId, waits: false }));
    });
  }

  #read(read: () => Promise<readonly ComposedWarning[]>): Promise<readonly ComposedWarning[]> {
    const { deps, correlationId } = this.#call;
    return within(patienceMs, read(), () => []).catch((err: unknown) => {
      deps.logger.warn({ err, correlationId }, 'the warnings of a post could not be read');
      return [];
    });
  }

  /** @param base pointer to the post in the body of the call */
  async of(post: WarnedPost, base = ''): Promise<readonly Warning[]> {
    const { id, state, sent, notes, isTimed = true, replayed = false } = post;
    if (state.status === 'none') return [];
    const moment = replayed ? [] : await this.#moment;
    const checked = replayed ? null : this.#checked;
    // What the command wrote, also where it waits for an approval.
    const body = newestBody(state);
    const planned = state.status === 'live' ? state.plan.targets : (checked?.plan.targets ?? null);
    const targets = post.targets ?? planned;
    const isHeld = state.status === 'live' ? state.planHeld : (checked?.isHeld ?? null);
    const zone = notes.given.has('timezone') ? 'sent' : 'stored';
    const composed = composedWarnings(body, { targets, isHeld, zone }).filter(
      ({ code }) => isTimed || !timeWarnings.includes(code),
    );
    const unused = sent === undefined ? [] : unusedAltTexts(sent.mediaAltTexts, body);
    return folded([...moment, ...composed, ...unused]).map((one) => shown(id, base, one));
  }
}
