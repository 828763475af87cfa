import { birthOf, Rejection } from '#domain/decider.ts';
import { contentFor } from '#domain/post/content.ts';
import { newestBody, post } from '#domain/post/post.ts';
import { isKnownSince, isListed } from '#domain/post-target/target.ts';
import { accountsByIds } from '#projections/models/accounts.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DeclaredRestore } from '#runtime/work/restores.ts';
import type { Platform } from '#schemas/common.ts';
import type { PostBody } from '#schemas/post.ts';
import type { Call } from '../call/operation.ts';
import type { LoadedTarget } from './load.ts';

/**
 * After a restore: what may be out, and whose network cannot be asked, goes out only once a person has looked at the
 * account. Callers learn it here; the publisher holds it in any case.
 */

type Asking = Pick<Call, 'deps' | 'workspaceId'>;

interface Place {
  readonly accountId: string;
  readonly platform: Platform;
}

/** Those whose networks list no post with this content: they cannot be asked whether it is out. */
const silentOf = async <One extends Place>(
  { deps, workspaceId }: Asking,
  places: readonly One[],
  body: PostBody,
): Promise<readonly One[]> => {
  const ids = [...new Set(places.map(({ accountId }) => accountId))];
  const rows = await accountsByIds(deps.knex, workspaceId, ids);
  const externalIds = new Map(rows.map((row) => [row.id, row.external_id]));
  return places.filter(({ accountId, platform }) => {
    const account = { platform, externalId: externalIds.get(accountId) ?? '' };
    return !isListed(account, contentFor(body, platform));
  });
};

const unconfirmed = (accountIds: readonly string[]): Rejection =>
  new Rejection(
    'restore_unconfirmed',
    `The service was restored from an older copy, and this may be out since then. Look at these accounts, and confirm them: ${accountIds.join(', ')}.`,
  );

const isOlder = (events: readonly DecodedEvent[], { restoredAt }: DeclaredRestore): boolean =>
  (birthOf(post, events)?.metadata.occurredAt ?? '') <= restoredAt;

/** @throws Rejection `restore_unconfirmed` */
const requireTrusted = async ({ deps }: Asking, accountIds: readonly string[], restore: DeclaredRestore) => {
  const left = (await deps.restores?.unlooked(accountIds, restore)) ?? [];
  if (left.length > 0) throw unconfirmed(left);
};

/**
 * Before a retry. @returns whether a person’s word says that a target whose outcome is unknown since the restore is not
 * out
 * @throws Rejection `restore_unconfirmed`
 */
export const requireWordForRetry = async (call: Asking, { target, post: loaded }: LoadedTarget): Promise<boolean> => {
  const restore = (await call.deps.restores?.newest()) ?? null;
  if (restore === null) return false;
  const { state } = target;
  const { accountId, platform } = state.common;
  const isLost = state.status === 'outcome_unknown' && state.restored;
  if (!isLost) {
    if (state.status !== 'failed' && state.status !== 'rate_limited') return false;
    if (isKnownSince(state, restore) || !isOlder(loaded.events, restore) || loaded.state.status !== 'live')
      return false;
    const place = { accountId, platform };
    if ((await silentOf(call, [place], newestBody(loaded.state))).length === 0) return false;
  }
  await requireTrusted(call, [accountId], restore);
  return isLost;
};

/** Before a draft is published, or a held post is released. @throws Rejection `restore_unconfirmed` */
export const requireWordForPlan = async (
  call: Asking,
  events: readonly DecodedEvent[],
  body: PostBody,
  targets: readonly Place[],
): Promise<void> => {
  const restore = (await call.deps.restores?.newest()) ?? null;
  if (restore === null || !isOlder(events, restore)) return;
  const silent = await silentOf(call, targets, body);
  await requireTrusted(call, [...new Set(silent.map(({ accountId }) => accountId))], restore);
};
