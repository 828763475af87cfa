import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { type MediaState, media } from '#domain/media.ts';
import { kindOfType } from '#domain/media-types.ts';
import { draftMediaIssues, mediaIssues, type PostAsset, type PostAssets } from '#domain/post/compose.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import type { Issue } from '#schemas/issues.ts';
import type { MediaKind } from '#schemas/media.ts';
import type { PostBody } from '#schemas/post.ts';
import type { StreamsOfWorkspace } from './accounts.ts';

/** The assets that a body names, from their streams, and why a post cannot have them. */

/** The file of an import is not fetched yet: it cannot be published. */
export const kindOr = (kind: MediaKind | null): MediaKind => kind ?? 'image';

/** A deleted asset is unknown, like one that never existed. */
const ofState = (state: MediaState): PostAsset | null => {
  if (state.status === 'none' || state.status === 'deleted') return null;
  if (state.status === 'offered') {
    const { clientId, contentType } = state.offer;
    const kind = kindOr(kindOfType(contentType));
    return {
      clientId,
      kind,
      status: 'pending',
      publishable: false,
      probe: null,
      altText: null,
      needs: new Map(),
      sha256: null,
    };
  }
  const { origin, details, stored, status, probe, needs, isDeleted } = state;
  if (isDeleted) return null;
  const claimed = origin.kind === 'upload' ? kindOfType(origin.offer.contentType) : null;
  return {
    clientId: details.clientId,
    kind: kindOr(stored?.kind ?? claimed),
    status,
    publishable: status === 'transcoded',
    probe,
    altText: details.altText,
    needs,
    sha256: stored?.sha256 ?? null,
  };
};

/** Null for an asset that is unknown, deleted or another workspace's. */
export const assetFromStream = async (
  { deps, workspaceId }: StreamsOfWorkspace,
  id: string,
): Promise<PostAsset | null> => {
  const { state, events } = await deps.store.load(media, id);
  return events[0]?.metadata.workspaceId === workspaceId ? ofState(state) : null;
};

const refusal = (code: ErrorCode, detail: string, errors: readonly Issue[]): readonly Rejection[] =>
  errors.length === 0 ? [] : [new Rejection(code, detail, { errors })];

const unknown = (issues: readonly Issue[]): readonly Rejection[] =>
  refusal('validation_failed', 'The input is not valid.', issues);
const strangers = (issues: readonly Issue[]): readonly Rejection[] =>
  refusal('media_not_in_client', 'Media of one client is used in posts of that client only.', issues);

/** `validation_failed` (unknown or foreign ids), `media_not_publishable`, `media_not_in_client` */
export const mediaRefusals = (
  body: PostBody,
  destinations: readonly Destination[],
  assets: PostAssets,
): readonly Rejection[] => {
  const { invalid, notPublishable, notInClient } = mediaIssues(body, destinations, assets);
  return [
    ...unknown(invalid),
    ...refusal('media_not_publishable', 'The media cannot be published, or not yet.', notPublishable),
    ...strangers(notInClient),
  ];
};

/**
 * Only the post's own client must be allowed to use the media of a draft, unless the draft names accounts of several
 * clients. Whether its networks take the media is checked at publication: `validation_failed`, `media_not_in_client`.
 */
export const draftMediaRefusals = (body: PostBody, clientId: string, assets: PostAssets): readonly Rejection[] => {
  const { invalid, notInClient } = draftMediaIssues(body, clientId, assets);
  return [...unknown(invalid), ...(body.targetSelection.mode === 'accounts' ? [] : strangers(notInClient))];
};
