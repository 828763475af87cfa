import { accountsByIds, connectedAccountIds } from '#projections/models/accounts.ts';
import { maxRefreshed } from '#schemas/http/analytics-refresh.ts';
import { accountFromStream } from '#services/workflows/posts/accounts.ts';
import type { Call } from '../operation.ts';
import { invalid, Refusal } from '../refusal.ts';

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'behind'>;

/** Unknown ids that a refusal names: each costs a read of its own. */
const maxNamed = 20;

/** The accounts of a refresh, each once: those that the call names, else all connected ones. @throws Refusal 422 */
export const accountsToRefresh = async (
  call: Asking,
  sent: readonly string[] | undefined,
): Promise<readonly string[]> => {
  await call.behind(['workspace']);
  return sent === undefined ? allConnected(call) : named(call, sent);
};

const allConnected = async ({ deps, workspaceId }: Asking): Promise<readonly string[]> => {
  const ids = await connectedAccountIds(deps.knex, workspaceId, maxRefreshed + 1);
  if (ids.length > maxRefreshed)
    throw invalid('/accountIds', 'required', `is required: more than ${maxRefreshed} are connected`);
  return ids;
};

/** An account that the read model lacks is looked up in its stream. */
const named = async (call: Asking, sent: readonly string[]): Promise<readonly string[]> => {
  const { deps, workspaceId } = call;
  const ids = [...new Set(sent)];
  const known = new Set((await accountsByIds(deps.knex, workspaceId, ids)).map(({ id }) => id));
  const unknown: string[] = [];
  for (const id of ids) {
    if (known.has(id) || (await accountFromStream(call, id)) !== null) continue;
    unknown.push(id);
    if (unknown.length >= maxNamed) break;
  }
  if (unknown.length === 0) return ids;
  throw new Refusal('validation_failed', 'The input is not valid.', {
    errors: unknown.map((id) => ({
      path: `/accountIds/${sent.indexOf(id)}`,
      code: 'unknown_id',
      message: 'is not known',
    })),
  });
};
