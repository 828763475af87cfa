import { apikey } from '#domain/apikey.ts';
import { birthOf } from '#domain/decider.ts';
import { isAtLeast, roleAllows } from '#domain/roles.ts';
import { workspace } from '#domain/workspace.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { ApiKeyEvent, Scope } from '#schemas/apikey.ts';
import type { EventActor, Role } from '#schemas/common.ts';

/**
 * What the member behind an actor may do now, as the streams know it. Of a key it is its owner, whether or not the key has
 * ended: what a key made goes on while its owner could make it.
 */

/** Null: the actor is no member and no key, or the member was removed. */
const roleBehind = async (store: DomainStore, workspaceId: string, actor: EventActor): Promise<Role | null> => {
  const { state: tenant } = await store.load(workspace, workspaceId);
  const liveId = tenant.status === 'created' ? (tenant.twinOf ?? workspaceId) : workspaceId;
  const { state: live } = liveId === workspaceId ? { state: tenant } : await store.load(workspace, liveId);
  const memberId = actor.type === 'apikey' ? await ownerOfKey(store, liveId, actor.id) : actor.id;
  const known = live.status === 'created' && memberId !== null && (actor.type === 'member' || actor.type === 'apikey');
  return (known ? live.members[memberId]?.role : undefined) ?? null;
};

/** A key stays with the live workspace. */
const ownerOfKey = async (store: DomainStore, liveId: string, keyId: string): Promise<string | null> => {
  const birth = birthOf(apikey, (await store.load(apikey, keyId)).events);
  if (birth?.type !== 'ApiKeyCreated' || birth.metadata.workspaceId !== liveId) return null;
  return (birth.data as unknown as Extract<ApiKeyEvent, { type: 'ApiKeyCreated' }>['data']).memberId;
};

/** Whether the member behind this actor may not publish unasked any more: they were removed, or are a creator by now. */
export const lacksAuthority = async (store: DomainStore, workspaceId: string, actor: EventActor): Promise<boolean> => {
  const role = await roleBehind(store, workspaceId, actor);
  return role === null || !isAtLeast(role, 'manager');
};

/** Whether what the actor made with this scope works on: its member may make it now, or an operator made it. */
export const mayStill = async (
  store: DomainStore,
  workspaceId: string,
  actor: EventActor,
  scope: Scope,
): Promise<boolean> => {
  if (actor.type !== 'member' && actor.type !== 'apikey') return true;
  const role = await roleBehind(store, workspaceId, actor);
  return role !== null && roleAllows(role, scope);
};
