import { isDeleted, type MediaState, media, type Offer } from '#domain/media.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { MediaAccepted, MediaRegister } from '#schemas/http/media.ts';
import type { MediaEvent } from '#schemas/media.ts';
import { eventsUpTo } from '../commands.ts';
import { acceptedMedia } from '../media/answers.ts';
import { unavailable } from '../media/blobs.ts';
import { nameOf, platformsOf, requireLiveClient, requireRoom } from '../media/checks.ts';
import { registerExample } from '../media/examples.ts';
import { type Call, operation } from '../operation.ts';
import { invalid, Refusal } from '../refusal.ts';

type Details = Extract<MediaEvent, { type: 'MediaRegistered' }>['data'];
/** Null: the asset was registered before, and the answer shows its present state. */
interface Decided {
  readonly details: Details | null;
}

/**
 * The call is accepted with all its values, so that a repeat after a crash registers the same. If we die before the
 * append, the repeat appends; after it, the decider finds the asset registered. Longer than most operations: accept and
 * effects are read together.
 */
export const registerMedia = operation({
  id: 'registerMedia',
  method: 'POST',
  path: '/media',
  tag: 'media',
  summary: 'Register an uploaded file',
  description: 'Starts transcoding. An asset that is registered already is answered unchanged.',
  scope: 'media.manage',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: MediaRegister,
  answer: MediaAccepted,
  codes: ['media_not_uploaded', 'media_quota_exceeded', 'client_archived'],
  example: registerExample,
  handle: async (call) => {
    const { deps, body, positions } = call;
    const { assetId } = body;
    const held: { loaded?: Loaded<MediaState> } = {};
    const { result, replayed } = await call.once(
      async (): Promise<Decided> => {
        const loaded = await deps.store.load(media, assetId);
        const { state, events } = loaded;
        if (state.status === 'none' || isDeleted(state) || events[0]?.metadata.workspaceId !== call.workspaceId) {
          throw invalid('/assetId', 'is not known');
        }
        held.loaded = loaded;
        if (state.status !== 'offered') return { details: null };
        await requireUploaded(call, state.offer);
        // The bytes were counted at the offer. An upload that arrived very late may have lost its room, so the call
        // reserves it again.
        await requireRoom(call, assetId, state.offer.bytes);
        const clientId = body.clientId ?? state.offer.clientId;
        await requireLiveClient(call, clientId);
        return {
          details: {
            name: body.name === undefined ? state.offer.fileName : nameOf(body.name),
            clientId,
            folder: body.folder ?? state.offer.folder,
            altText: body.altText ?? null,
            platforms: await platformsOf(call, clientId, body.platforms),
          },
        };
      },
      async ({ details }, context) => {
        if (details === null) return { revision: (held.loaded ?? (await deps.store.load(media, assetId))).revision };
        const done = await execute(deps.store, media, assetId, { type: 'Register', ...details }, context, {
          positions,
          ...(held.loaded === undefined ? {} : { loaded: held.loaded }),
        });
        held.loaded = done;
        const own = done.events.findLast((event) => event.metadata.commandId === context.commandId);
        return { revision: own?.revision ?? done.revision };
      },
    );
    const events = await eventsUpTo(call, `media-${assetId}`, result.revision, held.loaded?.events ?? []);
    deps.store.note(events, positions);
    return { data: await acceptedMedia(call, events), revision: result.revision, replayed };
  },
});

/**
 * Checks the type and length of the uploaded file, although the presigned address allowed no others. @throws Refusal
 * 422
 */
const requireUploaded = async ({ deps }: Pick<Call, 'deps'>, offer: Offer): Promise<void> => {
  const found = await unavailable(() => deps.blobs.head(offer.key));
  if (found === null) throw new Refusal('media_not_uploaded', 'Nothing was uploaded for this asset.');
  if (found.bytes !== offer.bytes || found.contentType.toLowerCase() !== offer.contentType) {
    throw new Refusal('media_not_uploaded', 'What was uploaded is not of the type and length that were announced.');
  }
};
