import { asksToRetry, letsLateFail } from '#domain/client.ts';
import { textRules } from '#domain/client-rules.ts';
import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { lazy } from '#domain/lazy.ts';
import type { PostAsset, PostAssets } from '#domain/post/compose.ts';
import { mediaIdsOf } from '#domain/post/content.ts';
import type { Submission } from '#domain/post/post-approval.ts';
import { type AccountRow, accountsByIds, groupOf } from '#projections/models/accounts.ts';
import { getClient } from '#projections/models/clients.ts';
import { cadenceSource } from '#projections/queries/posting-rules.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { Issue, IssueCode } from '#schemas/issues.ts';
import type { PostBody, TargetSelection } from '#schemas/post.ts';
import { type CadenceSource, cadenceRefusal } from '#services/workflows/cadence/check.ts';
import {
  accountFromStream,
  checkOwnClient,
  clientFromStream,
  clientRefusal,
  invalidInput,
  type LiveCampaign,
  liveCampaign,
  ofAccounts,
  type Selected,
  type SelectedAccount,
  type SelectedClient,
  unknownId,
} from '#services/workflows/posts/accounts.ts';
import {
  allOf,
  type ComposedPost,
  type Composing,
  checksOfDraft,
  type PlannedPost,
  type PostReads,
  planPost,
} from '#services/workflows/posts/compose.ts';
import type { Call } from '../call/operation.ts';
import { assetsByIds } from './assets.ts';

/**
 * What the checks of posts read. Sets come from the read models, after a wait for the caller's own writes; an id that
 * the read models do not have yet is looked up in its stream, so that an account connected a moment ago is never
 * "unknown".
 */

type Reading = Pick<Call, 'deps' | 'workspaceId'>;

const clientById = async ({ deps, workspaceId }: Reading, id: string): Promise<SelectedClient | null> => {
  const row = await getClient(deps.knex, workspaceId, id);
  if (row !== null) {
    const { archived_at: archivedAt, approval_required: approvalRequired, timezone, rules } = row;
    const archived = archivedAt !== null;
    const read = { failsLate: letsLateFail(rules), rules: textRules(rules) };
    return { id, archived, approvalRequired, timezone, ...read, retriesWhenAbsent: !archived && asksToRetry(rules) };
  }
  return clientFromStream({ deps, workspaceId }, id);
};

/** Streams of one call that are read at once: a caller may name 500 unknown ids, and must not delay the reads of others. */
const readAtOnce = 16;

const selectedOf = (row: AccountRow): SelectedAccount => ({
  ...row,
  clientId: row.client_id,
  externalId: row.external_id,
  observed: row.observed_limits ?? [],
});

const accountsById = async (
  call: Reading,
  ids: readonly string[],
): Promise<ReadonlyMap<string, SelectedAccount | null>> => {
  const rows = await accountsByIds(call.deps.knex, call.workspaceId, ids);
  const found = new Map<string, SelectedAccount | null>(rows.map((row) => [row.id, selectedOf(row)]));
  const missing = ids.filter((id) => !found.has(id));
  await inParallel(missing, readAtOnce, async (id) => {
    found.set(id, await accountFromStream(call, id));
  });
  return found;
};

/** Reads what was not read before in one go, and answers the rest from memory. */
const once = <Value>(read: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value | null>>) => {
  const asked = new Map<string, Promise<Value | null>>();
  return (ids: readonly string[]): Promise<readonly (Value | null)[]> => {
    const fresh = ids.filter((id) => !asked.has(id));
    if (fresh.length > 0) {
      const reading = read(fresh);
      for (const id of fresh) {
        const one = reading.then((found) => found.get(id) ?? null);
        one.catch(() => undefined);
        asked.set(id, one);
      }
    }
    return Promise.all(ids.map(async (id) => (await asked.get(id)) ?? null));
  };
};

const single = <Value>(read: (id: string) => Promise<Value>) => {
  const asked = new Map<string, Promise<Value>>();
  return (id: string): Promise<Value> => {
    const known = asked.get(id) ?? read(id);
    known.catch(() => undefined);
    asked.set(id, known);
    return known;
  };
};

/** The caller's own posts of a moment ago count. Only a limited account asks for slots, and waits for them. */
export const readingOwnWrites = async (call: Pick<Call, 'deps' | 'workspaceId' | 'behind'>): Promise<CadenceSource> => {
  const { rules, slots } = await cadenceSource(call.deps.pool, call.workspaceId);
  return {
    rules,
    slots: async (asked) => {
      await call.behind(['posts']);
      return slots(asked);
    },
  };
};

/** The reads of one call: each thing is read once, however many posts of the call name it. */
export class Reads {
  readonly client: (id: string) => Promise<SelectedClient | null>;
  /** Every account of a client that is not disconnected. */
  readonly group: (clientId: string) => Promise<readonly SelectedAccount[]>;
  readonly accounts: (ids: readonly string[]) => Promise<readonly (SelectedAccount | null)[]>;
  readonly campaign: (id: string) => Promise<LiveCampaign | null>;
  readonly cadence: PostReads['cadence'];
  readonly #assets: (ids: readonly string[]) => Promise<readonly (PostAsset | null)[]>;

  constructor(call: Reading & Pick<Call, 'behind'>) {
    const ownWrites = lazy(() => call.behind(['workspace']));
    this.client = single(async (id) => {
      await ownWrites();
      return clientById(call, id);
    });
    this.group = single(async (clientId) => {
      await ownWrites();
      const rows = await groupOf(call.deps.knex, call.workspaceId, clientId);
      return rows.map(selectedOf);
    });
    this.accounts = once(async (ids) => {
      await ownWrites();
      return accountsById(call, ids);
    });
    this.cadence = async (wanted, own) => cadenceRefusal(await readingOwnWrites(call), wanted, own);
    this.campaign = single((id) => liveCampaign(call, id));
    this.#assets = once((ids) => assetsByIds(call, ids));
  }

  /** The assets of the workspace that the body names. A body without assets makes no query. */
  async assets(body: PostBody): Promise<PostAssets> {
    const ids = mediaIdsOf(body);
    if (ids.length === 0) return new Map();
    const found = await this.#assets(ids);
    return new Map(ids.flatMap((id, index) => (found[index] ? [[id, found[index]] as const] : [])));
  }
}

/** The accounts that a selection names. */

/** @throws Rejection `validation_failed` (unknown), `client_archived` */
export const ownClient = async (
  call: Pick<Call, 'deps' | 'workspaceId'>,
  clientId: string,
): Promise<SelectedClient | null> => {
  const found = await clientById(call, clientId);
  const refusal = clientRefusal(found);
  if (refusal !== null) throw refusal;
  return found;
};

/**
 * Yields why these accounts cannot be selected: `validation_failed` (unknown or foreign ids), `account_not_in_client`,
 * `account_disconnected`, `client_archived`. Returns the known ones all the same.
 */
export async function* select(reads: Reads, clientId: string, body: PostBody): AsyncGenerator<Rejection, Selected> {
  // Both are read at the same time; problems of the client are reported first.
  const asked = accountsOf(reads, clientId, body.targetSelection);
  asked.catch(() => undefined);
  const own = yield* checkOwnClient(reads, clientId);
  const { accounts, refusals } = await asked;
  yield* refusals;
  return yield* ofAccounts(reads, clientId, own, accounts);
}

type Fault = (one: SelectedAccount) => boolean;

interface Found {
  readonly accounts: readonly SelectedAccount[];
  readonly refusals: readonly Rejection[];
}

const accountsOf = async (reads: Reads, ownId: string, selection: TargetSelection): Promise<Found> => {
  if (selection.mode === 'group') {
    const all = await reads.group(ownId);
    const wanted = selection.platforms;
    return { accounts: all.filter(({ platform }) => wanted === null || wanted.includes(platform)), refusals: [] };
  }
  const sent = selection.accountIds ?? [];
  // Duplicates count once; a path leads to the first of them as it was sent.
  const ids = [...new Set(sent)];
  const found = await reads.accounts(ids);
  const path = (id: string) => `/targets/accountIds/${sent.indexOf(id)}`;
  const accounts = found.filter((one) => one !== null);
  const missing = ids.filter((_, index) => found[index] === null).map((id) => unknownId(path(id)));
  const refusals = missing.length === 0 ? [] : [invalidInput(missing)];
  const refuse = (at: Fault, code: ErrorCode & IssueCode, message: string, detail: string): void => {
    const errors = accounts
      .filter(at)
      .map(({ id, platform }): Issue => ({ path: path(id), code, message, accountId: id, platform }));
    if (errors.length > 0) refusals.push(new Rejection(code, detail, { errors }));
  };
  const isForeign: Fault = ({ clientId }) => selection.mode === 'selection' && clientId !== ownId;
  const everyOne = 'Every account of a selection must be the post’s own client’s.';
  refuse(isForeign, 'account_not_in_client', 'belongs to another client than the post', everyOne);
  const isGone: Fault = ({ status }) => status === 'disconnected';
  refuse(isGone, 'account_disconnected', 'is disconnected', 'A selected account is disconnected.');
  return { accounts, refusals };
};

/** The checks of posts, as an operation makes them: for its caller, and on what it reads. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now' | 'behind'>;

/** A creator's post goes out once a person with another role has approved it. */
export const composingOf = ({ principal, now }: Pick<Asking, 'principal' | 'now'>): Composing => ({
  author: { actor: principal.actor, needsApproval: principal.role === 'creator' },
  now,
});

/** What the call was accepted with no longer holds: nothing of it is stored, so it is accepted anew. */
export class Overtaken extends Rejection {
  constructor() {
    super('revision_mismatch', 'The post, or what the caller may do, was changed at the same time, again and again.');
  }
}

/**
 * Before the append: a repeat carries out what was accepted, unless it goes out unasked and the caller may not publish
 * so any more. @throws Overtaken
 */
export const requireAuthority = (
  call: Pick<Asking, 'principal' | 'now'>,
  { submission }: { readonly submission?: Submission },
): void => {
  if (submission === undefined && composingOf(call).author.needsApproval) throw new Overtaken();
};

/** @throws Rejection for all of `checksOfDraft` */
export const checkDraft = async (
  call: Asking,
  clientId: string,
  body: PostBody,
  reads: Reads = new Reads(call),
): Promise<void> => {
  const refusal = Rejection.ofAll((await allOf(checksOfDraft(reads, clientId, body))).refusals);
  if (refusal !== null) throw refusal;
};

/** Plans a post for the accounts that its body selects, unless others are chosen. @throws Rejection */
export const planForCaller = (
  call: Asking,
  post: Omit<ComposedPost<Reads>, 'choose'> & Partial<Pick<ComposedPost<Reads>, 'choose'>>,
  reads: Reads = new Reads(call),
): Promise<PlannedPost> => planPost(composingOf(call), reads, { choose: select, ...post });
