import { isDeleted, type MediaCommand, type MediaState, media, type Offer, withoutQuery } from '#domain/media.ts';
import { type Loaded, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Cleaned } from '#schemas/http/common.ts';
import { MediaAccepted, MediaImport, MediaPresign, MediaRegister, MediaUpload } from '#schemas/http/media.ts';
import type { MediaEvent } from '#schemas/media.ts';
import { ImportUrls } from '#services/workflows/import-urls.ts';
import { isOf, streamUpTo } from '../call/commands.ts';
import { type Acted, type Call, operation } from '../call/operation.ts';
import { invalid, Refusal } from '../call/refusal.ts';
import { keptWarnings } from '../call/warnings.ts';
import { requireAllowedUrl } from '../webhooks/checks.ts';
import {
  fileNameOf,
  fileNameOfUrl,
  nameOf,
  platformsOf,
  requireLiveClient,
  requireRoom,
  requireTakenType,
  unavailable,
} from './checks.ts';
import { importExample, mediaTag, presignExample, registerExample } from './examples.ts';
import { acceptedMedia } from './show.ts';

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
const registerUpload = async (call: Registering): Promise<Acted<MediaState>> => {
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

/** How long after the offer an upload may begin, milliseconds. */
const uploadMs = 3_600_000;

/**
 * Reserves room, then appends the offer. If we die before the append, the key is free, and the room is released once
 * the address would have expired. If we die after the append, a repeat signs an address for the same place. Longer than
 * most operations: half of it is what it promises.
 */
export const presignMedia = operation({
  id: 'presignMedia',
  method: 'POST',
  path: '/media/presign',
  tag: mediaTag,
  summary: 'Get an address to upload a file to',
  description:
    'PUT the file to `url` with `headers` within the hour, then register the asset. Until the asset is registered, a repeat with the same Idempotency-Key answers the same asset with a fresh address. The length counts at once against the quota of the workspace and its sandbox. Posters and renditions count when they are made, and may pass that quota.',
  scope: 'media.manage',
  limited: 'owned',
  idempotent: 'accepted',
  cost: 1,
  body: MediaPresign,
  answer: MediaUpload,
  codes: ['client_archived', 'media_quota_exceeded'],
  example: presignExample,
  handle: async (call) => {
    const { deps, body, workspaceId, now } = call;
    const expiresAt = new Date(Date.parse(now) + uploadMs);
    const { id, state, replayed } = await call.stream(media).create({
      command: async (id): Promise<MediaCommand> => {
        const contentType = requireTakenType(body.contentType, body.bytes);
        await requireLiveClient(call, body.clientId ?? null);
        return {
          type: 'Offer',
          fileName: fileNameOf(body.fileName),
          clientId: body.clientId ?? null,
          folder: body.folder ?? null,
          contentType,
          bytes: body.bytes,
          key: `${workspaceId}/${id}/upload`,
          expiresAt: expiresAt.toISOString(),
        };
      },
      reserve: (id) => requireRoom(call, id, body.bytes, expiresAt),
    });
    if (state.status !== 'offered') throw new BrokenInvariant('an asset that was just offered has no offer');
    const { key, contentType, bytes } = state.offer;
    const upload = { object: 'media_upload', assetId: id, key };
    // A registered asset gets no new address, because the caller could then replace a file that was already checked.
    const registered = replayed && (await deps.store.load(media, id)).state.status !== 'offered';
    if (registered) return { data: { ...upload, url: null, headers: {}, expiresAt: null }, replayed };
    // The room of the offer may have been released when the former address expired.
    if (replayed) await requireRoom(call, id, bytes, expiresAt);
    const { url, headers } = await unavailable(() => deps.blobs.presignPut(key, { contentType, bytes, expiresAt }));
    return { data: { ...upload, url, headers, expiresAt: expiresAt.toISOString() }, replayed };
  },
});

const described = Object.keys(MediaRegister.properties).filter((name) => name !== 'assetId');

export const registerMedia = operation({
  id: 'registerMedia',
  method: 'POST',
  path: '/media',
  tag: mediaTag,
  summary: 'Register an uploaded file',
  description:
    'The service then examines the file and makes its renditions: wait for the event `media.ready`, or GET the asset until `publishable` is true. An asset that is registered already is answered unchanged, and `meta.warnings` names the members that change nothing.',
  scope: 'media.manage',
  limited: 'owned',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: MediaRegister,
  answer: MediaAccepted,
  codes: ['media_not_uploaded', 'media_quota_exceeded', 'client_archived'],
  example: registerExample,
  handle: async (call) => {
    const { events, revision, replayed } = await registerUpload(call);
    const data = await acceptedMedia(call, events);
    const registered = events.find(({ type }) => type === 'MediaRegistered')?.metadata;
    const warnings = registered?.keyHmac === call.context.keyHmac ? [] : keptWarnings(call, described, data);
    return { data, revision, replayed, warnings };
  },
});

/**
 * Stores the whole address, then appends the request. If we die before the append, the key is free, and the media
 * worker finds the stored address by its age and destroys it. If we die after the append, the worker fetches the file.
 */
export const importMedia = operation({
  id: 'importMedia',
  method: 'POST',
  path: '/media/import-url',
  tag: mediaTag,
  summary: 'Import a file by its address',
  description:
    'The service fetches and transcodes the file afterwards; a file that it cannot use fails the asset. Redirects are followed to public addresses only. The query of the address is kept, encrypted, until the file is fetched or given up. The length of the file counts against the quota of the workspace and its sandbox once it is fetched; without room the asset fails with `import_no_room`.',
  scope: 'media.manage',
  limited: 'owned',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: MediaImport,
  answer: MediaAccepted,
  codes: ['url_not_allowed', 'client_archived', 'media_quota_exceeded'],
  example: importExample,
  handle: async (call) => {
    const { deps, body } = call;
    const url = withoutQuery(body.url);
    const source = url === body.url ? null : uuidv7();
    const { events, replayed } = await call.stream(media).create({
      command: async (): Promise<MediaCommand> => {
        await requireAllowedUrl(deps, body.url);
        const clientId = body.clientId ?? null;
        await requireLiveClient(call, clientId);
        return {
          type: 'RequestImport',
          url,
          ...(source === null ? {} : { source }),
          name: body.name === undefined ? fileNameOfUrl(deps.egress.checkUrl(body.url)) : nameOf(body.name),
          clientId,
          folder: body.folder ?? null,
          altText: body.altText ?? null,
          platforms: await platformsOf(call, clientId, body.platforms),
        };
      },
      reserve: async (id) => {
        // The length of the file is unknown: the worker counts it when the file is here. The import does not begin
        // without room for one byte.
        await requireRoom(call, id, 1);
        if (source !== null) await new ImportUrls(deps.pool, deps.secrets).keep(source, id, body.url);
      },
    });
    const data = await acceptedMedia(call, events);
    return { data, revision: data.revision, replayed };
  },
});
