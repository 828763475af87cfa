import { setImmediate } from 'node:timers/promises';
import { grantsOf } from '#domain/platforms/index.ts';
import { ruleIssues } from '#domain/post/compose.ts';
import { contentFor } from '#domain/post/content.ts';
import { accountWarnings, contentWarnings, type PreviewWarning, retryWarnings, warning } from '#domain/post/preview.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import { type SameText, sameTexts } from '#projections/queries/same-texts.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Issue } from '#schemas/issues.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { type Checked, slowToCount } from '#services/workflows/posts/compose.ts';
import { withinLimit } from '../call/limited.ts';
import type { Call } from '../call/operation.ts';

/** What the author of a checked post should know of it at this moment, for each account. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'behind'>;

export interface Foreseen {
  readonly destination: Destination;
  /** Null: a network on which the client has no account. */
  readonly target: PlannedTarget | null;
  /** Those with `willFail` first. */
  readonly warnings: readonly PreviewWarning[];
}

export interface Foreseeing {
  /** The post whose own targets are no duplicates; null: it does not exist yet. */
  readonly postId: string | null;
  /** Whether posts are looked for that the caller stored a moment ago: it may wait for the read models. */
  readonly waits: boolean;
}

export const foresee = async (
  call: Asking,
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
  const statuses = new Map(accounts.map(({ id, status }) => [id, status]));
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
        ...accountWarnings(statuses.get(target.accountId) ?? ''),
        ...(again === undefined ? [] : [duplicate(again)]),
        ...(retrying.has(target.clientId) ? retryWarnings(target) : []),
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
  call: Asking,
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
