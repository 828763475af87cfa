import type { MediaEvent, MediaFailure, MediaKind, MediaNeed, MediaProbe, RenditionSpec } from '#schemas/media.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * A file of the content library. Its law: its end, and the end of each rendition, is recorded once; a refused file
 * stays refused; the planned renditions are made, however often a worker crashes.
 */

export interface MediaFile {
  readonly key: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface MediaDetails {
  readonly name: string;
  readonly clientId: string | null;
  readonly folder: string | null;
  readonly altText: string | null;
}

export interface MadeFile extends MediaFile {
  readonly width: number | null;
  readonly height: number | null;
  readonly durationMs: number | null;
}

/** The state of one need. `fits`: the source file itself fits. */
export type NeedState = MediaNeed &
  (
    | { readonly status: 'wanted' | 'fits' }
    | { readonly status: 'planned'; readonly rendition: string }
    | { readonly status: 'ready'; readonly rendition: string; readonly file: MadeFile }
    | { readonly status: 'failed'; readonly failure: MediaFailure }
  );

export interface Offer extends Omit<MediaDetails, 'name' | 'altText'> {
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly key: string;
  readonly expiresAt: string;
}

export type Origin =
  | { readonly kind: 'upload'; readonly offer: Offer }
  /**
   * `url` loses its query once the file is stored. `source`: the id under which the whole address is kept until then.
   */
  | { readonly kind: 'import'; readonly url: string; readonly source: string | null };

export type MediaState =
  | { readonly status: 'none' }
  | { readonly status: 'offered'; readonly offer: Offer }
  /** `keys`: files that may still exist. `kind`: readers of published posts with this asset still need it. */
  | { readonly status: 'deleted'; readonly keys: readonly string[]; readonly kind: MediaKind | null }
  | {
      readonly status: 'transcoding' | 'transcoded' | 'failed' | 'quarantined';
      readonly origin: Origin;
      readonly details: MediaDetails;
      /** Networks whose renditions were requested at the start. */
      readonly platforms: MediaEventData<'MediaRegistered'>['platforms'];
      readonly stored: (MediaFile & { readonly kind: MediaKind }) | null;
      readonly probe: MediaProbe | null;
      /** Whether the needs of `platforms` were planned. */
      readonly planned: boolean;
      /** By `needKey`, in the order of the requests. */
      readonly needs: ReadonlyMap<string, NeedState>;
      readonly specs: ReadonlyMap<string, RenditionSpec>;
      readonly poster: (MediaFile & { readonly width: number; readonly height: number }) | null;
      readonly failure: MediaFailure | null;
      /** The asset is no longer in the library. Posts that took it before may still go out with it. */
      readonly isDeleted: boolean;
    };
export type Asset = Exclude<MediaState, { status: 'none' | 'offered' | 'deleted' }>;

type MediaEventData<T extends MediaEvent['type']> = Extract<MediaEvent, { type: T }>['data'];

export type PlannedNeed = MediaNeed &
  (
    | { readonly outcome: 'fits' }
    | { readonly outcome: 'rendition'; readonly id: string; readonly spec: RenditionSpec }
    | { readonly outcome: 'failed'; readonly failure: MediaFailure }
  );

export type MediaCommand =
  | ({ readonly type: 'Offer' } & Offer)
  | ({ readonly type: 'Register' } & MediaEventData<'MediaRegistered'>)
  | ({ readonly type: 'RequestImport' } & MediaEventData<'MediaImportRequested'>)
  | ({ readonly type: 'RecordStored' } & MediaEventData<'MediaStored'>)
  | { readonly type: 'RecordProbed'; readonly probe: MediaProbe }
  | ({ readonly type: 'RequestRenditions' } & MediaEventData<'MediaRenditionsRequested'>)
  /** `initial`: it covers the needs of the asset's own platforms. */
  | { readonly type: 'Plan'; readonly initial: boolean; readonly needs: readonly PlannedNeed[] }
  | { readonly type: 'RecordRendition'; readonly rendition: string; readonly file: MadeFile }
  | { readonly type: 'RecordRenditionFailed'; readonly rendition: string; readonly failure: MediaFailure }
  | { readonly type: 'RecordTranscoded'; readonly poster: MediaEventData<'MediaTranscoded'>['poster'] }
  | { readonly type: 'Delete' | 'RemoveFiles' }
  | { readonly type: 'RecordFailed' | 'RecordQuarantined'; readonly failure: MediaFailure };

/** The part of an address that may be kept for ever. */
export const withoutQuery = (url: string): string => url.replace(/[?#].*/s, '');

/** The files that are kept for the asset, with the renditions that are ready and the poster. */
export const filesOf = ({ needs, stored, poster }: Asset): readonly MediaFile[] => [
  ...[...needs.values()].flatMap((need) => (need.status === 'ready' ? [need.file] : [])),
  ...(stored === null ? [] : [stored]),
  ...(poster === null ? [] : [poster]),
];

/** Keys under which files of the asset may exist. */
const keysOf = (state: Asset): readonly string[] => {
  const upload = state.origin.kind === 'upload' ? [state.origin.offer.key] : [];
  return [...new Set([...upload, ...filesOf(state).map(({ key }) => key)])];
};

/** Bytes of the files of an asset, each counted once. */
export const bytesOf = (state: MediaState): number => {
  if (!isOpen(state)) return 0;
  const sizes = new Map(filesOf(state).map(({ key, bytes }) => [key, bytes]));
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
};

export const needKey = ({ platform, use }: MediaNeed): string => `${platform}/${use}`;

const isAsset = (state: MediaState): state is Asset =>
  state.status !== 'none' && state.status !== 'offered' && state.status !== 'deleted';
/** Whether the asset is no longer in the library; its files may still exist. */
export const isDeleted = (state: MediaState): boolean =>
  state.status === 'deleted' || (isAsset(state) && state.isDeleted);
/** Whether work on the asset goes on: a refused file gets no more events. */
const isOpen = (state: MediaState): state is Asset =>
  isAsset(state) && (state.status === 'transcoding' || state.status === 'transcoded');

const needsOf = (state: Asset, ...statuses: readonly NeedState['status'][]): readonly NeedState[] =>
  [...state.needs.values()].filter(({ status }) => statuses.includes(status));

/** Needs that share a planned rendition which is not ready yet. */
const waitingFor = (state: Asset, rendition: string): readonly NeedState[] =>
  [...state.needs.values()].filter((need) => need.status === 'planned' && need.rendition === rendition);

export type MediaStep = 'store' | 'probe' | 'plan' | 'render' | 'finish' | 'remove';

/**
 * The next step; null when none is left. Each step ends in an event, so after a crash the same step is the next one
 * again.
 */
export const nextStep = (state: MediaState): MediaStep | null => {
  // Only a usable asset can be in a post: its renditions are still made for that post.
  if (isAsset(state) && state.isDeleted && state.status !== 'transcoded') return 'remove';
  if (!isOpen(state)) return null;
  if (state.stored === null) return 'store';
  if (state.probe === null) return 'probe';
  if (!state.planned || needsOf(state, 'wanted').length > 0) return 'plan';
  if (needsOf(state, 'planned').length > 0) return 'render';
  if (state.status === 'transcoding') return 'finish';
  return state.isDeleted ? 'remove' : null;
};

const decide = (command: MediaCommand, state: MediaState): readonly MediaEvent[] => {
  switch (command.type) {
    case 'Offer': {
      const { type: _, ...data } = command;
      return state.status === 'none' ? [{ type: 'MediaUploadOffered', data }] : [];
    }
    case 'Register': {
      if (state.status === 'none' || state.status === 'deleted')
        throw new Rejection('not_found', 'There is no such asset.');
      const { type: _, ...data } = command;
      return state.status === 'offered' ? [{ type: 'MediaRegistered', data }] : [];
    }
    case 'RequestImport': {
      const { type: _, ...data } = command;
      return state.status === 'none' ? [{ type: 'MediaImportRequested', data }] : [];
    }
    case 'Delete':
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such asset.');
      return isDeleted(state) ? [] : [{ type: 'MediaDeleted', data: {} }];
    case 'RemoveFiles':
      return isAsset(state) && state.isDeleted ? [{ type: 'MediaFilesRemoved', data: {} }] : [];
    case 'RecordStored': {
      const { type: _, ...data } = command;
      return isOpen(state) && state.stored === null ? [{ type: 'MediaStored', data }] : [];
    }
    case 'RecordProbed':
      if (!isOpen(state) || state.stored === null || state.probe !== null) return [];
      return [{ type: 'MediaProbed', data: { probe: command.probe } }];
    case 'RequestRenditions': {
      if (!isOpen(state)) return [];
      const needs = command.needs.filter((need) => !state.needs.has(needKey(need)));
      return needs.length === 0 ? [] : [{ type: 'MediaRenditionsRequested', data: { needs, for: command.for } }];
    }
    case 'Plan':
      return isOpen(state) && state.probe !== null ? plan(state, command) : [];
    case 'RecordRendition': {
      const { rendition, file } = command;
      if (!isOpen(state)) return [];
      return waitingFor(state, rendition).map(({ platform, use }) => ({
        type: 'MediaRenditionReady',
        data: { platform, use, rendition, ...file },
      }));
    }
    case 'RecordRenditionFailed': {
      const { rendition, failure } = command;
      if (!isOpen(state)) return [];
      return waitingFor(state, rendition).map(({ platform, use }) => ({
        type: 'MediaRenditionFailed',
        data: { platform, use, rendition, failure },
      }));
    }
    case 'RecordTranscoded':
      if (nextStep(state) !== 'finish') return [];
      return [{ type: 'MediaTranscoded', data: { poster: command.poster } }];
    case 'RecordFailed':
    case 'RecordQuarantined':
      if (state.status !== 'transcoding') return [];
      return [
        {
          type: command.type === 'RecordFailed' ? 'MediaFailed' : 'MediaQuarantined',
          data: { failure: command.failure },
        },
      ];
  }
};

const plan = (state: Asset, { initial, needs }: Extract<MediaCommand, { type: 'Plan' }>): readonly MediaEvent[] => {
  const open = needs.filter((need) => (state.needs.get(needKey(need))?.status ?? 'wanted') === 'wanted');
  if (open.length === 0 && (state.planned || !initial)) return [];
  const met = open.flatMap((need) => (need.outcome === 'failed' ? [] : [need]));
  const specs = new Map(met.flatMap((need) => (need.outcome === 'rendition' ? [[need.id, need.spec] as const] : [])));
  return [
    {
      type: 'MediaRenditionsPlanned',
      data: {
        initial,
        needs: met.map((need) => ({
          platform: need.platform,
          use: need.use,
          rendition: need.outcome === 'rendition' ? need.id : null,
        })),
        renditions: [...specs].map(([id, spec]) => ({ id, spec })),
      },
    },
    ...open.flatMap((need): MediaEvent[] =>
      need.outcome !== 'failed'
        ? []
        : [
            {
              type: 'MediaRenditionFailed',
              data: { platform: need.platform, use: need.use, rendition: null, failure: need.failure },
            },
          ],
    ),
  ];
};

const newAsset = (origin: Origin, data: MediaEventData<'MediaRegistered'>): Asset => {
  const { platforms, name, clientId, folder, altText } = data;
  return {
    status: 'transcoding',
    origin,
    details: { name, clientId, folder, altText },
    platforms,
    stored: null,
    probe: null,
    planned: false,
    needs: new Map(),
    specs: new Map(),
    poster: null,
    failure: null,
    isDeleted: false,
  };
};

const withNeeds = (state: Asset, changed: readonly NeedState[]): Asset => {
  const needs = new Map(state.needs);
  for (const need of changed) needs.set(needKey(need), need);
  return { ...state, needs };
};

/** The download is over: the address is no longer needed, and its query may be a credential. */
const downloaded = (state: Asset): Asset => {
  const { origin } = state;
  return origin.kind === 'upload' ? state : { ...state, origin: { ...origin, url: withoutQuery(origin.url) } };
};

const evolve = (state: MediaState, event: MediaEvent): MediaState => {
  switch (event.type) {
    case 'MediaUploadOffered':
      return { status: 'offered', offer: event.data };
    case 'MediaRegistered':
      return state.status === 'offered' ? newAsset({ kind: 'upload', offer: state.offer }, event.data) : state;
    case 'MediaImportRequested':
      return newAsset({ kind: 'import', url: event.data.url, source: event.data.source ?? null }, event.data);
    case 'MediaDeleted':
      if (state.status === 'offered') return { status: 'deleted', keys: [state.offer.key], kind: null };
      return isAsset(state) ? { ...state, isDeleted: true } : state;
    case 'MediaFilesRemoved':
      return isAsset(state) ? { status: 'deleted', keys: keysOf(state), kind: state.stored?.kind ?? null } : state;
    default:
      return isAsset(state) ? evolveAsset(state, event) : state;
  }
};

const evolveAsset = (
  state: Asset,
  event: Exclude<
    MediaEvent,
    { type: 'MediaUploadOffered' | 'MediaRegistered' | 'MediaImportRequested' | 'MediaDeleted' | 'MediaFilesRemoved' }
  >,
): Asset => {
  switch (event.type) {
    case 'MediaStored':
      return { ...downloaded(state), stored: event.data };
    case 'MediaProbed':
      return { ...state, probe: event.data.probe };
    case 'MediaRenditionsRequested': {
      const added = event.data.needs.filter((need) => !state.needs.has(needKey(need)));
      return withNeeds(
        state,
        added.map(({ platform, use }) => ({ platform, use, status: 'wanted' })),
      );
    }
    case 'MediaRenditionsPlanned': {
      const { initial, needs, renditions } = event.data;
      const planned = needs.map(
        ({ platform, use, rendition }): NeedState =>
          rendition === null ? { platform, use, status: 'fits' } : { platform, use, status: 'planned', rendition },
      );
      const specs = new Map([...state.specs, ...renditions.map(({ id, spec }) => [id, spec] as const)]);
      return { ...withNeeds(state, planned), specs, planned: state.planned || initial };
    }
    case 'MediaRenditionReady': {
      const { platform, use, rendition, ...file } = event.data;
      return withNeeds(state, [{ platform, use, status: 'ready', rendition, file }]);
    }
    case 'MediaRenditionFailed': {
      const { platform, use, failure } = event.data;
      return withNeeds(state, [{ platform, use, status: 'failed', failure }]);
    }
    case 'MediaTranscoded':
      return { ...state, status: 'transcoded', poster: event.data.poster };
    case 'MediaFailed':
      return { ...downloaded(state), status: 'failed', failure: event.data.failure };
    case 'MediaQuarantined':
      return { ...downloaded(state), status: 'quarantined', failure: event.data.failure };
  }
};

export const media: Decider<MediaState, MediaCommand, MediaEvent> = {
  kind: 'media',
  initial: { status: 'none' },
  decide,
  evolve,
};
