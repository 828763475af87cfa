/** The calls that make a post: the one that shows it, and the text after it where no caption holds it. */
import type { Json, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { MediaKind } from '#schemas/media.ts';
import type { Members } from '../shared/members.ts';
import type { FormFile } from './multipart.ts';

export interface Send {
  readonly method: 'sendMessage' | 'sendPhoto' | 'sendVideo' | 'sendAnimation' | 'sendDocument' | 'sendMediaGroup';
  readonly fields: Members;
  readonly files: readonly FormFile[];
}

export interface Message {
  readonly first: Send;
  /** The text of a post whose caption would be too long. */
  readonly then: Send | null;
}

/** "sendPhoto": 0-1024 characters after entities parsing. */
const maxCaption = 1_024;

const singles = {
  image: { method: 'sendPhoto', field: 'photo', type: 'photo' },
  video: { method: 'sendVideo', field: 'video', type: 'video' },
  gif: { method: 'sendAnimation', field: 'animation', type: 'animation' },
  document: { method: 'sendDocument', field: 'document', type: 'document' },
} as const satisfies Record<MediaKind, { readonly method: Send['method']; field: string; type: string }>;

const extensions: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'video/mp4': 'mp4',
  'application/pdf': 'pdf',
};

const fileOf = async (media: PublishMedia, name: string): Promise<FormFile> => ({
  name,
  filename: `${name}.${extensions[media.contentType] ?? 'bin'}`,
  contentType: media.contentType,
  slice: { path: await media.file(), start: 0, end: media.bytes },
});

/** Another name than that of the member: a form has each name once. */
const coverPart = 'cover0';
const attached = (name: string): string => `attach://${name}`;

/** What the network shows of a video before it has read the file. */
const filmOf = ({ kind, width, height, durationMs }: PublishMedia): Members =>
  kind !== 'video' && kind !== 'gif'
    ? {}
    : {
        ...(width === null ? {} : { width }),
        ...(height === null ? {} : { height }),
        ...(durationMs === null ? {} : { duration: Math.round(durationMs / 1_000) }),
        ...(kind === 'video' ? { supports_streaming: true } : {}),
      };

const single = async (media: PublishMedia, cover: PublishMedia | null): Promise<Send> => {
  const { method, field } = singles[media.kind];
  const files = [await fileOf(media, field)];
  const hasCover = media.kind === 'video' && cover !== null;
  if (hasCover) files.push(await fileOf(cover, coverPart));
  // A file in the field of its own name needs no other mention.
  return { method, fields: { ...filmOf(media), ...(hasCover ? { cover: attached(coverPart) } : {}) }, files };
};

/** The cover is that of the first video. */
const album = async (all: readonly PublishMedia[], cover: PublishMedia | null, caption: Members): Promise<Send> => {
  const files: FormFile[] = [];
  const media: Json[] = [];
  const covered = cover === null ? -1 : all.findIndex(({ kind }) => kind === 'video');
  for (const [place, one] of all.entries()) {
    const name = `file${place}`;
    files.push(await fileOf(one, name));
    if (place === covered && cover !== null) files.push(await fileOf(cover, coverPart));
    media.push({
      type: singles[one.kind].type,
      media: attached(name),
      ...filmOf(one),
      ...(place === covered ? { cover: attached(coverPart) } : {}),
      ...(place === 0 ? caption : {}),
    });
  }
  return { method: 'sendMediaGroup', fields: { media }, files };
};

export const shownLength = (content: string, parseMode: Json | undefined): number => {
  const { shown } = rulesOf('telegram').text;
  return (shown?.(content, { parseMode: typeof parseMode === 'string' ? parseMode : undefined } as never) ?? content)
    .length;
};

export const modeOf = ({ parseMode }: PublishRequest['overrides']): Members =>
  typeof parseMode === 'string' ? { parse_mode: parseMode } : {};

export const messageOf = async (request: PublishRequest, chatId: string): Promise<Message> => {
  const { content, overrides, media, cover } = request;
  const common: Members = {
    chat_id: Number(chatId),
    ...(overrides.disableNotification === true ? { disable_notification: true } : {}),
    ...(overrides.protectContent === true ? { protect_content: true } : {}),
  };
  const mode = modeOf(overrides);
  const text: Send = { method: 'sendMessage', fields: { ...common, text: content, ...mode }, files: [] };
  const [only, ...more] = media;
  if (only === undefined) return { first: text, then: null };
  const fits = shownLength(content, overrides.parseMode) <= maxCaption;
  const caption = fits && content !== '' ? { caption: content, ...mode } : {};
  const isAlbum = more.length > 0;
  const send = isAlbum ? await album(media, cover, caption) : await single(only, cover);
  const first = { ...send, fields: { ...common, ...send.fields, ...(isAlbum ? {} : caption) } };
  return { first, then: fits ? null : text };
};
