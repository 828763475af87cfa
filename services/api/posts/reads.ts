import { asksToRetry, letsLateFail } from '#domain/client.ts';
import { textRules } from '#domain/client-rules.ts';
import { lazy } from '#domain/lazy.ts';
import type { PostAsset, PostAssets } from '#domain/post/compose.ts';
import { mediaIdsOf } from '#domain/post/content.ts';
import { type AccountRow, accountsByIds, groupOf } from '#projections/models/accounts.ts';
import { getClient } from '#projections/models/clients.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { PostBody } from '#schemas/post.ts';
import { cadenceRefusal } from '#services/workflows/cadence/refusal.ts';
import { type LiveCampaign, liveCampaign } from '#services/workflows/campaigns/live.ts';
import {
  accountFromStream,
  clientFromStream,
  type SelectedAccount,
  type SelectedClient,
} from '#services/workflows/posts/accounts.ts';
import type { PostReads } from '#services/workflows/posts/compose.ts';
import { readingOwnWrites } from '../accounts/cadence.ts';
import type { Call } from '../call/operation.ts';
import { assetsByIds } from './assets.ts';

/**
 * What the checks of posts read. Sets come from the read models, after a wait for the caller's own writes; an id that
 * the read models do not have yet is looked up in its stream, so that an account connected a moment ago is never
 * "unknown".
 */

type Asking = Pick<Call, 'deps' | 'workspaceId'>;

export const clientById = async ({ deps, workspaceId }: Asking, id: string): Promise<SelectedClient | null> => {
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
  observed: row.observed_limits ?? [],
});

const accountsById = async (
  call: Asking,
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

/** The reads of one call: each thing is read once, however many posts of the call name it. */
export class Reads {
  readonly client: (id: string) => Promise<SelectedClient | null>;
  /** Every account of a client that is not disconnected. */
  readonly group: (clientId: string) => Promise<readonly SelectedAccount[]>;
  readonly accounts: (ids: readonly string[]) => Promise<readonly (SelectedAccount | null)[]>;
  readonly campaign: (id: string) => Promise<LiveCampaign | null>;
  readonly cadence: PostReads['cadence'];
  readonly #assets: (ids: readonly string[]) => Promise<readonly (PostAsset | null)[]>;

  constructor(call: Asking & Pick<Call, 'behind'>) {
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
