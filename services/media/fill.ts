import { type MediaState, media } from '#domain/media.ts';
import { kindOfType } from '#domain/media-types.ts';
import { mediaIdsOf, needsOfTarget } from '#domain/post/content.ts';
import { post } from '#domain/post/post.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { derivedFrom, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaKind, MediaNeed } from '#schemas/media.ts';
import type { PostEvent } from '#schemas/post.ts';

/**
 * Requests the renditions that a post needs as soon as it is scheduled or revised. The asset's decider takes each need
 * once, so a repeat after a crash yields no event.
 */

export const fillGroup = 'media-fill';
export const plannedTypes: readonly PostEvent['type'][] = ['PostScheduled', 'PostRevised'];

export const fill = async (store: DomainStore, event: DecodedEvent, now: () => number): Promise<void> => {
  const { type, data } = { type: event.type, data: event.data } as unknown as PostEvent;
  if (type !== 'PostScheduled' && type !== 'PostRevised') return;
  const { body } = data;
  const ids = mediaIdsOf(body);
  if (ids.length === 0) return;
  const platforms =
    'plan' in data ? data.plan.targets.map((one) => one.platform) : await revisedOn(store, event, data.targetIds);
  const { workspaceId } = event.metadata;
  const assets = new Map<string, Loaded<MediaState>>();
  for (const id of ids) {
    const loaded = await store.load(media, id);
    // A file of another workspace does not count.
    if (loaded.events[0]?.metadata.workspaceId === workspaceId) assets.set(id, loaded);
  }
  const needs = new Map<string, MediaNeed[]>();
  for (const platform of new Set(platforms)) {
    for (const { mediaId, need } of needsOfTarget(body, platform, (id) => kindOf(assets.get(id)?.state))) {
      needs.set(mediaId, [...(needs.get(mediaId) ?? []), need]);
    }
  }
  for (const [id, wanted] of needs) {
    const loaded = assets.get(id);
    if (loaded === undefined) continue;
    await execute(
      store,
      media,
      id,
      { type: 'RequestRenditions', needs: wanted, for: { kind: 'post', id: event.stream.slice('post-'.length) } },
      serviceContext('media', derivedFrom(event), now()),
      { loaded },
    );
    faultPoint('fill:after-request');
  }
};

/** The networks of the targets that a revise names; their plan is in the post's stream. */
const revisedOn = async (
  store: DomainStore,
  { stream }: DecodedEvent,
  targetIds: readonly string[],
): Promise<readonly Platform[]> => {
  const { state } = await store.load(post, stream.slice('post-'.length));
  const named = new Set(targetIds);
  const planned = state.status === 'live' ? state.plan.targets : [];
  return planned.filter(({ targetId }) => named.has(targetId)).map(({ platform }) => platform);
};

/** By its bytes where they are known, else by the type that the caller named. */
const kindOf = (state: MediaState | undefined): MediaKind => {
  if (state === undefined || state.status === 'none' || state.status === 'deleted') return 'image';
  const offer = state.status === 'offered' ? state.offer : state.origin.kind === 'upload' ? state.origin.offer : null;
  const stored = state.status === 'offered' ? null : state.stored;
  return stored?.kind ?? kindOfType(offer?.contentType ?? '') ?? 'image';
};
