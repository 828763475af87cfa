import { isDeleted, type MediaState, media, type Offer } from '#domain/media.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Cleaned } from '#schemas/http/common.ts';
import type { MediaRegister } from '#schemas/http/media.ts';
import type { MediaEvent } from '#schemas/media.ts';
import type { Acted } from '../actions.ts';
import { isOf, streamUpTo } from '../commands.ts';
import type { Call } from '../operation.ts';
import { invalid, Refusal } from '../refusal.ts';
import { unavailable } from './blobs.ts';
import { nameOf, platformsOf, requireLiveClient, requireRoom } from './checks.ts';

type Registering = Call<unknown, unknown, Cleaned<typeof MediaRegister>>;

type Details = Extract<MediaEvent, { type: 'MediaRegistered' }>['data'];
interface Accepted {
  /** Null: the asset was registered before, and the answer shows its present state. */
  readonly details: Details | null;
}

/**
 * The call is accepted with all its values, so that a repeat after a crash registers the same. If we die before the
 * append, the repeat appends; after it, the decider finds the asset registered. An asset that was registered before is
 * answered in its present state.
 */
export const registerUpload = async (call: Registering): Promise<Acted<MediaState>> => {
  const { deps, positions } = call;
  const { assetId } = call.body;
  let asset: Loaded<MediaState> | undefined;
  const { result, replayed } = await call.once(
    async (): Promise<Accepted> => {
      const loaded = await loadOwn(call, assetId);
      asset = loaded;
      const { state } = loaded;
      return { details: state.status === 'offered' ? await accept(call, state.offer) : null };
    },
    async ({ details }, context) => {
      if (details === null) return { revision: (asset ?? (await deps.store.load(media, assetId))).revision };
      const options = asset === undefined ? { positions } : { positions, loaded: asset };
      const done = await execute(deps.store, media, assetId, { type: 'Register', ...details }, context, options);
      asset = done;
      return { revision: done.events.findLast(isOf(context))?.revision ?? done.revision };
    },
  );
  const left = await streamUpTo(call, media, assetId, result.revision, asset);
  deps.store.note(left.events, positions);
  return { ...left, replayed };
};

/** @throws Refusal 422 for an asset that is unknown, deleted or another workspace's */
const loadOwn = async ({ deps, workspaceId }: Registering, assetId: string): Promise<Loaded<MediaState>> => {
  const loaded = await deps.store.load(media, assetId);
  const { state, events } = loaded;
  if (state.status === 'none' || isDeleted(state) || events[0]?.metadata.workspaceId !== workspaceId) {
    throw invalid('/assetId', 'unknown_id', 'is not known');
  }
  return loaded;
};

/** The details of the call, and those of the offer that the call does not name. */
const accept = async (call: Registering, offer: Offer): Promise<Details> => {
  const { body } = call;
  await requireUploaded(call, offer);
  // The bytes were counted at the offer. An upload that arrived very late may have lost its room, so the call
  // reserves it again.
  await requireRoom(call, body.assetId, offer.bytes);
  const clientId = body.clientId ?? offer.clientId;
  await requireLiveClient(call, clientId);
  return {
    name: body.name === undefined ? offer.fileName : nameOf(body.name),
    clientId,
    folder: body.folder ?? offer.folder,
    altText: body.altText ?? null,
    platforms: await platformsOf(call, clientId, body.platforms),
  };
};

/**
 * Checks the type and length of the uploaded file, although the presigned address allowed no others. @throws Refusal
 * 422
 */
const requireUploaded = async ({ deps }: Registering, offer: Offer): Promise<void> => {
  const found = await unavailable(() => deps.blobs.head(offer.key));
  if (found === null) throw new Refusal('media_not_uploaded', 'Nothing was uploaded for this asset.');
  if (found.bytes !== offer.bytes || found.contentType.toLowerCase() !== offer.contentType) {
    throw new Refusal('media_not_uploaded', 'What was uploaded is not of the type and length that were announced.');
  }
};
