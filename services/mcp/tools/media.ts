import { type Static, Type } from 'typebox';
import type { Media as MediaSchema } from '#schemas/http/media.ts';
import type { Cuts } from '../cuts.ts';
import { reads, tool } from '../tool.ts';
import {
  Args,
  Id,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  PlainKey,
  Platforms,
  pageOf,
  plainPaging,
  Replayed,
  replayedWords,
  Text,
} from '../words.ts';

/** Images and videos for posts. */

type Media = Static<typeof MediaSchema>;

const Asset = Type.Object({
  mediaId: Type.String(),
  name: Type.String(),
  status: Type.String(),
  publishable: Type.Boolean({ description: 'True: a post may use it.' }),
  kind: Nullable(Type.String()),
  clientId: Nullable(Type.String(), 'Null: posts of every client may use it.'),
  bytes: Nullable(Type.Integer()),
  progress: Nullable(Type.Number(), 'Part of the rendering that is done.'),
  readiness: Type.Record(Type.String(), Type.String(), {
    description: 'By network: ready, not_needed, preparing, failed.',
  }),
  failure: Nullable(Type.String(), 'Why it cannot be used.'),
});

const assetOf = ({ id, failure, ...media }: Media): Static<typeof Asset> => ({
  mediaId: id,
  name: media.name,
  status: media.status,
  publishable: media.publishable,
  kind: media.kind,
  clientId: media.clientId,
  bytes: media.bytes,
  progress: media.progress,
  readiness: media.readiness as Record<string, string>,
  failure: failure === null ? null : `${failure.message} (${failure.code})`,
});

const lineOf = (cuts: Cuts, { mediaId, name, kind, status, publishable, failure }: Static<typeof Asset>): string =>
  `- ${cuts.quoted('name', name)} (mediaId ${mediaId}): ${kind ?? 'file'}, ${publishable ? 'ready to use' : status}${failure === null ? '' : `: ${failure}`}`;

const nextOf = ({ publishable, failure, status }: Static<typeof Asset>): string => {
  if (publishable) return 'Use the mediaId in mediaIds of compose_post.';
  if (failure !== null) return 'It cannot be used. Import another file.';
  if (status === 'pending') return 'Its upload was not finished. Import the file by its address instead.';
  return 'It is being prepared: ask media_status again in some seconds.';
};

export const importMedia = tool({
  name: 'import_media',
  title: 'Import an image or a video',
  description:
    'Takes an image or video from a public https address into the library. It is fetched and prepared afterwards: ask media_status until it is ready.',
  scopes: ['media.manage'],
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  input: Args({
    url: Text(2048, 'Public https address of the file itself, not of a page that shows it.'),
    clientId: Maybe(Id('Only posts of this client may use it. Absent: posts of every client.')),
    name: Maybe(Text(255, 'File name in the library.')),
    altText: Maybe(Text(2000, 'What the picture shows, for people who do not see it.')),
    folder: Maybe(Text(200, 'A label of your own.')),
    platforms: Maybe(Platforms('Networks to prepare it for at once. Absent: those of the client.')),
    idempotencyKey: PlainKey,
  }),
  output: Type.Object({
    mode: Mode,
    asset: Type.Object(
      { mediaId: Type.String(), status: Type.String(), publishable: Type.Boolean() },
      { description: 'As in media_status.' },
    ),
    replayed: Replayed,
    nextStep: Next,
  }),
  run: async (call, { idempotencyKey: _key, ...body }) => {
    const { data, replayed } = await call.invoke<Media>('importMedia', { body, key: call.key('create') });
    const asset = assetOf(data);
    const nextStep = nextOf(asset);
    const text = joined(
      `The import has begun (${call.mode}).`,
      replayedWords(replayed),
      lineOf(call.cuts, asset),
      nextStep,
    );
    return { text, data: { mode: call.mode, asset, replayed, nextStep } };
  },
});

export const mediaStatus = tool({
  name: 'media_status',
  title: 'Files of the library',
  description:
    'Tells whether an image or video is ready for posts (mediaId), or finds files in the library by client or name, newest first, to use one that is there already.',
  scopes: ['media.read'],
  hints: reads,
  input: Args({
    mediaId: Maybe(Id('Only this file.')),
    clientId: Maybe(Id('Only files of this client.')),
    search: Maybe(Type.String()),
    ...plainPaging,
  }),
  output: Type.Object({ mode: Mode, assets: Type.Array(Asset), nextCursor: NextCursor, nextStep: Next }),
  run: async (call, { mediaId, clientId, search, ...page }) => {
    const one = mediaId === undefined ? null : await call.invoke<Media>('getMedia', { params: { id: mediaId } });
    const list =
      one === null ? await call.invoke<Media[]>('listMedia', { query: { clientId, search, ...pageOf(page) } }) : null;
    const assets = (one === null ? (list?.data ?? []) : [one.data]).map(assetOf);
    const nextCursor = list?.page?.nextCursor ?? null;
    const [first] = assets;
    const found = first === undefined ? 'No file fits. import_media takes one from its address.' : null;
    const nextStep =
      found ?? (mediaId === undefined || first === undefined ? 'Use a mediaId in compose_post.' : nextOf(first));
    const text = joined(
      `${many(assets.length, 'file')} (${call.mode}).`,
      ...assets.map((asset) => lineOf(call.cuts, asset)),
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, assets, nextCursor, nextStep } };
  },
});
