import { contentFor } from '#domain/content.ts';
import { type MediaState, media } from '#domain/media.ts';
import { useOf } from '#domain/platforms/index.ts';
import { newestBody, post } from '#domain/post.ts';
import { target } from '#domain/target.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';

/** How a post was published, which decides the figures that its network has. For a thread its head counts. */
export interface Shown {
  readonly use: MediaUse;
  readonly hasVideo: boolean;
}

const kindOf = (state: MediaState): MediaKind => {
  if (state.status === 'none' || state.status === 'offered') return 'image';
  return (state.status === 'deleted' ? state.kind : state.stored?.kind) ?? 'image';
};

export const shownOf = async (store: DomainStore, targetId: string): Promise<Shown> => {
  const { state } = await store.load(target, targetId);
  if (state.status === 'none') throw new BrokenInvariant(`target ${targetId} has no stream`);
  const { state: its } = await store.load(post, state.common.postId, state.common.postRevision);
  if (its.status !== 'live')
    throw new BrokenInvariant(`post ${state.common.postId} has no plan at revision ${state.common.postRevision}`);
  const { segments, overrides } = contentFor(newestBody(its), state.common.platform);
  const kinds = await Promise.all(segments[0].mediaIds.map(async (id) => kindOf((await store.load(media, id)).state)));
  const hasVideo = kinds.some((kind) => kind === 'video' || kind === 'gif');
  return { use: useOf(state.common.platform, overrides, kinds), hasVideo };
};
