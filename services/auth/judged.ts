import { apikey } from '#domain/apikey.ts';
import { grant } from '#domain/grant.ts';
import { type Member, workspace } from '#domain/workspace.ts';
import type { FoundKey } from '#projections/models/apikeys.ts';
import type { FoundGrant } from '#projections/models/grants.ts';
import { type Membership, roleOfMember, workspacesOfPerson } from '#projections/models/workspaces.ts';
import type { Freshness } from '#projections/queries/freshness.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Role } from '#schemas/common.ts';
import type { PeopleDeps } from './people/deps.ts';

/**
 * The power of credentials and members, by the read model as long as it may be believed. Where a row says that power was
 * taken, or the read model is behind, the streams decide.
 */

export interface PowerDeps extends Pick<PeopleDeps, 'store' | 'pool'> {
  /** Of the projection of workspaces, keys and grants. Absent: only rows make the streams decide. */
  readonly freshness?: Pick<Freshness, 'isBehind'>;
}

/** Something found, and whether the streams decided about it: that stands for a moment alone. */
export type JudgedPower<Found> = Found & { readonly isJudged: boolean };

type Members = Readonly<Record<string, Member>>;

/** The members of live workspaces by their streams, each read once. */
const membersBy = (store: DomainStore): ((workspaceId: string) => Promise<Members>) => {
  const known = new Map<string, Promise<Members>>();
  const load = async (workspaceId: string): Promise<Members> => {
    const { state } = await store.load(workspace, workspaceId);
    return state.status === 'none' ? {} : state.members;
  };
  return (workspaceId) => {
    const members = known.get(workspaceId) ?? load(workspaceId);
    known.set(workspaceId, members);
    return members;
  };
};

/** Null: the key was rotated twice since, or the stream is gone. */
const keyByStream = async (store: DomainStore, hash: string, found: FoundKey): Promise<FoundKey | null> => {
  const { state, events } = await store.load(apikey, found.keyId);
  if (state.status === 'none') return null;
  const revokedAt = events.findLast(({ type }) => type === 'ApiKeyRevoked')?.metadata.occurredAt ?? null;
  if (state.hash === hash) return { ...found, revokedAt, previousUntil: null };
  const rotated = events.findLast(({ type }) => type === 'ApiKeyRotated')?.data;
  if (rotated?.previousHash !== hash) return null;
  return { ...found, revokedAt, previousUntil: String(rotated.previousUntil) };
};

/**
 * The keys by their hashes, as the streams have them where power may have been taken.
 * @param isBehind whether the read model is, so that all of them are judged
 */
export const judgeKeys = async (
  store: DomainStore,
  found: ReadonlyMap<string, FoundKey>,
  isBehind: boolean,
): Promise<ReadonlyMap<string, JudgedPower<FoundKey>>> => {
  const members = membersBy(store);
  const judge = async (hash: string, key: FoundKey): Promise<readonly [string, JudgedPower<FoundKey>] | null> => {
    if (!isBehind && !key.isWithdrawn) return [hash, { ...key, isJudged: false }];
    const judged = await keyByStream(store, hash, key);
    if (judged === null) return null;
    const role = (await members(key.workspaceId))[key.memberId]?.role ?? null;
    return [hash, { ...judged, role, isJudged: true }];
  };
  const all = await Promise.all([...found].map(([hash, key]) => judge(hash, key)));
  return new Map(all.filter((one) => one !== null));
};

/** The same for grants, by their ids. */
export const judgeGrants = async (
  store: DomainStore,
  found: ReadonlyMap<string, FoundGrant>,
  isBehind: boolean,
): Promise<ReadonlyMap<string, JudgedPower<FoundGrant>>> => {
  const members = membersBy(store);
  const judge = async (id: string, one: FoundGrant): Promise<readonly [string, JudgedPower<FoundGrant>] | null> => {
    if (!isBehind && !one.isWithdrawn) return [id, { ...one, isJudged: false }];
    const { state, events } = await store.load(grant, id);
    if (state.status === 'none') return null;
    const revokedAt = events.findLast(({ type }) => type === 'GrantRevoked')?.metadata.occurredAt ?? null;
    const role = (await members(one.workspaceId))[one.memberId]?.role ?? null;
    return [id, { ...one, revokedAt, role, isJudged: true }];
  };
  const all = await Promise.all([...found].map(([id, one]) => judge(id, one)));
  return new Map(all.filter((one) => one !== null));
};

/** The member's present role; null when the member left or never was one. */
export const roleNow = async (
  { store, pool, freshness }: PowerDeps,
  workspaceId: string,
  memberId: string,
): Promise<Role | null> => {
  const [{ role, isWithdrawn }, isBehind] = await Promise.all([
    roleOfMember(pool, workspaceId, memberId),
    freshness?.isBehind() ?? false,
  ]);
  // Without a row the member may have joined a moment ago: the projection, which is not behind, has not come to it yet.
  if (role !== null && !isWithdrawn && !isBehind) return role;
  return (await membersBy(store)(workspaceId))[memberId]?.role ?? null;
};

/** The live workspaces of which a person is a member now, oldest first, and the person's role in each. */
export const membershipsNow = async (
  { store, pool, freshness }: PowerDeps,
  personId: string,
): Promise<readonly Membership[]> => {
  const [found, isBehind] = await Promise.all([workspacesOfPerson(pool, personId), freshness?.isBehind() ?? false]);
  const members = membersBy(store);
  const judged = await Promise.all(
    found.map(async ({ isWithdrawn, ...one }): Promise<Membership | null> => {
      if (!isWithdrawn && !isBehind) return one;
      const member = (await members(one.workspaceId))[one.memberId];
      return member?.personId === personId ? { ...one, role: member.role } : null;
    }),
  );
  return judged.filter((one) => one !== null);
};
