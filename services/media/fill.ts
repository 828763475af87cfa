import { type MediaState, media } from '#domain/media.ts';
import { kindOfType } from '#domain/media-types.ts';
import { mediaIdsOf, needsOfTarget } from '#domain/post-media.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { derivedFrom, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { MediaKind, MediaNeed } from '#schemas/media.ts';
import type { PostEvent } from '#schemas/post.ts';

/**
 * Requests the renditions that a scheduled post needs as soon as the post is scheduled. The asset's decider takes each
 * need once, so a repeat after a crash yields no event.
 */

export const fillGroup = 'media-fill';
export const plannedTypes: readonly PostEvent['type'][] = ['PostScheduled'];

export const fill = async (store: DomainStore, event: DecodedEvent, now: () => number): Promise<void> => {
  const { type, data } = { type: event.type, data: event.data } as unknown as PostEvent;
  if (type !== 'PostScheduled') return;
  const { body, plan } = data;
  const ids = mediaIdsOf(body);
  if (ids.length === 0) return;
  const { workspaceId } = event.metadata;
  const assets = new Map<string, Loaded<MediaState>>();
  for (const id of ids) {
    const loaded = await store.load(media, id);
    // A file of another workspace does not count.
    if (loaded.events[0]?.metadata.workspaceId === workspaceId) assets.set(id, loaded);
  }
  const needs = new Map<string, MediaNeed[]>();
  for (const platform of new Set(plan.targets.map((one) => one.platform))) {
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

/** By its bytes where they are known, else by the type that the caller named. */
const kindOf = (state: MediaState | undefined): MediaKind => {
  if (state === undefined || state.status === 'none' || state.status === 'deleted') return 'image';
  const offer = state.status === 'offered' ? state.offer : state.origin.kind === 'upload' ? state.origin.offer : null;
  const stored = state.status === 'offered' ? null : state.stored;
  return stored?.kind ?? kindOfType(offer?.contentType ?? '') ?? 'image';
};
