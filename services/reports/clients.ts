import { client } from '#domain/client.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';

/**
 * Whether the client that a report is about was archived or erased; null: neither. Also null for a client of another
 * workspace, for whom a report finds neither names nor figures.
 */
export const endOf = async (
  store: DomainStore,
  workspaceId: string,
  clientId: string | null,
): Promise<'archived' | 'erased' | null> => {
  if (clientId === null) return null;
  const { state, events } = await store.load(client, clientId);
  if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId) return null;
  if (state.erased) return 'erased';
  return state.status === 'archived' ? 'archived' : null;
};
