import type { Pool } from 'pg';
import { approval, isUsableLink } from '#domain/approval.ts';
import { birthOf } from '#domain/decider.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { invite } from '#domain/invite.ts';
import { webhook } from '#domain/webhook.ts';
import {
  keysOfMember,
  liveWebhooks,
  openConnectInvites,
  pendingRequests,
  recyclesSetBy,
} from '#projections/queries/left-behind.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { Mode } from '#schemas/common.ts';
import type { LeftKind } from '#schemas/http/console.ts';

/** What a member or their keys made and that goes on: shown before and after the member is removed. */

export interface Left {
  readonly kind: LeftKind;
  readonly id: string;
  readonly parentId: string | null;
  readonly mode: Mode;
  readonly name: string;
  readonly expiresAt: string | null;
}

/** Streams that are read at once. */
const width = 8;

/** The newest of each kind first. @param liveId of the live workspace @param now ISO 8601 */
export const leftBehind = async (
  { pool, store }: { readonly pool: Pool; readonly store: DomainStore },
  { liveId, memberId, now }: { readonly liveId: string; readonly memberId: string; readonly now: string },
): Promise<readonly Left[]> => {
  const tenants = [liveId, testTwinIdOf(liveId)];
  const modeOf = ({ workspaceId }: { readonly workspaceId: string }): Mode =>
    workspaceId === liveId ? 'live' : 'test';
  const keys = await keysOfMember(pool, liveId, memberId, now);
  const actors = new Set([memberId, ...keys.map(({ id }) => id)]);
  const found: Left[] = keys
    .filter(({ isOpen }) => isOpen)
    .map(({ id, name, mode, expiresAt }) => ({
      ...({ kind: 'api_key', id, parentId: null, mode, name } as const),
      expiresAt: expiresAt.toISOString(),
    }));
  const [invites, requests, endpoints, recycled] = await Promise.all([
    openConnectInvites(pool, tenants, now),
    pendingRequests(pool, tenants),
    liveWebhooks(pool, tenants),
    recyclesSetBy(pool, tenants, [...actors]),
  ]);
  await inParallel(invites, width, async (one) => {
    const { state, events } = await store.load(invite, one.id);
    if (state.status !== 'open' || !actors.has(birthOf(invite, events)?.metadata.actor.id ?? '')) return;
    const { clientId, platforms, expiresAt } = state;
    const name = platforms.join(', ');
    found.push({ kind: 'connect_invite', id: one.id, parentId: clientId, mode: modeOf(one), name, expiresAt });
  });
  await inParallel(requests, width, async (one) => {
    const { state, events } = await store.load(approval, one.id);
    if (state.status === 'none') return;
    for (const { type, data, metadata } of events) {
      const link = type === 'ApprovalLinkCreated' ? state.links[String(data.linkId)] : undefined;
      if (!isUsableLink(link, now) || !actors.has(metadata.actor.id)) continue;
      const { expiresAt } = link;
      const of = { parentId: one.id, mode: modeOf(one), name: `post ${state.about.postId}`, expiresAt };
      found.push({ kind: 'approval_link', id: String(data.linkId), ...of });
    }
  });
  await inParallel(endpoints, width, async (one) => {
    const { events } = await store.load(webhook, one.id);
    const born = birthOf(webhook, events);
    if (born === undefined || !actors.has(born.metadata.actor.id)) return;
    const name = String(born.data.url);
    found.push({ kind: 'webhook', id: one.id, parentId: null, mode: modeOf(one), name, expiresAt: null });
  });
  for (const one of recycled) {
    const name = `post ${one.id}`;
    found.push({ kind: 'recycle', id: one.id, parentId: null, mode: modeOf(one), name, expiresAt: null });
  }
  return found;
};
