/** Judges a send and says what it would make, without making it. */
import type { Form, Upload } from './form.ts';
import { shown } from './markup.ts';
import { itemMembers } from './parameters.ts';
import { badRequest, RefusedCall } from './refused.ts';
import type { StoredFile } from './state.ts';

export interface Item {
  readonly kind: string;
  readonly text: string;
  readonly visible: string;
  readonly file: { readonly upload: Upload } | StoredFile | null;
}

const jsonOf = (value: unknown): unknown => (typeof value === 'string' ? JSON.parse(value) : value);

const textOf = (text: unknown, mode: unknown): string => {
  if (Buffer.byteLength(String(text ?? '')) > 32_768) throw badRequest('text is too long');
  try {
    return shown(String(text ?? ''), mode === undefined ? undefined : String(mode)).trim();
  } catch (error) {
    throw new RefusedCall(400, (error as Error).message);
  }
};

const captionOf = (text: unknown, mode: unknown): string => {
  const visible = textOf(text, mode);
  if (visible.length > 1_024) throw badRequest('message caption is too long');
  return visible;
};

const limits: Readonly<Record<string, number>> = { photo: 10 << 20 };
const extensions: Readonly<Record<string, RegExp>> = {
  photo: /\.(jpe?g|png|webp)$/,
  cover: /\.(jpe?g|png|webp)$/,
  video: /\.mp4$/,
  animation: /\.(gif|mp4)$/,
  document: /\.\w+$/,
};

class Files {
  readonly #form: Form;
  readonly #stored: ReadonlyMap<string, StoredFile>;
  readonly #used = new Set<string>();

  constructor(form: Form, stored: ReadonlyMap<string, StoredFile>) {
    this.#form = form;
    this.#stored = stored;
  }

  /** @param name of the member that names the file */
  find(kind: string, name: string, value: unknown): NonNullable<Item['file']> {
    const [, attached] = /^attach:\/\/(.+)$/.exec(String(value ?? '')) ?? [];
    const part = attached ?? (value === undefined ? name : null);
    if (part === null) {
      const stored = this.#stored.get(String(value));
      if (stored === undefined || stored.kind !== kind) throw badRequest('wrong file identifier/HTTP URL specified');
      return stored;
    }
    const upload = this.#form.uploads.get(part);
    if (upload === undefined) throw badRequest(`file "${part}" not found`);
    this.#used.add(part);
    if (upload.bytes.length === 0) throw badRequest('file must be non-empty');
    if (upload.bytes.length > (limits[kind] ?? 50 << 20)) {
      throw kind === 'photo' ? badRequest('file is too big') : new RefusedCall(413, 'Request Entity Too Large');
    }
    if (extensions[kind]?.test(upload.filename) === false) throw badRequest('PHOTO_EXT_INVALID');
    return { upload };
  }

  /** A part that nothing names is a mistake of the caller. */
  end(): void {
    for (const name of this.#form.uploads.keys()) {
      if (!this.#used.has(name)) throw badRequest(`unused part "${name}"`);
    }
  }
}

const single = (kind: string, { values }: Form, files: Files): Item => {
  const text = String(values.get('caption') ?? '');
  const file = files.find(kind, kind, values.get(kind));
  if (values.has('cover')) files.find('cover', 'cover', values.get('cover'));
  return { kind, text, visible: captionOf(text, values.get('parse_mode')), file };
};

const album = ({ values }: Form, files: Files): Item[] => {
  const media = jsonOf(values.get('media'));
  if (!Array.isArray(media) || media.length < 2 || media.length > 10) {
    throw badRequest('there must be 2 to 10 items in a media group');
  }
  const items = (media as Record<string, unknown>[]).map((one): Item => {
    const kind = String(one.type);
    const known = itemMembers[kind];
    if (known === undefined) throw badRequest(`type "${kind}" can't be sent in an album`);
    for (const name of Object.keys(one)) {
      if (!known.includes(name)) throw badRequest(`unknown member "${name}" of InputMedia`);
    }
    if (typeof one.media !== 'string') throw badRequest('media is not specified');
    const file = files.find(kind, kind, one.media);
    if (one.cover !== undefined) files.find('cover', 'cover', one.cover);
    return { kind, text: String(one.caption ?? ''), visible: captionOf(one.caption, one.parse_mode), file };
  });
  if (new Set(items.map(({ kind }) => kind === 'document')).size > 1) throw badRequest('MEDIA_GROUPED_INVALID');
  return items;
};

export const itemsOf = (method: string, form: Form, stored: ReadonlyMap<string, StoredFile>): readonly Item[] => {
  const { values } = form;
  const files = new Files(form, stored);
  let items: readonly Item[];
  if (method === 'sendMessage') {
    const visible = textOf(values.get('text'), values.get('parse_mode'));
    if (visible === '') throw badRequest('message text is empty');
    if (visible.length > 4_096) throw badRequest('message is too long');
    items = [{ kind: 'text', text: String(values.get('text')), visible, file: null }];
  } else if (method === 'sendMediaGroup') items = album(form, files);
  else items = [single(method.slice('send'.length).toLowerCase(), form, files)];
  files.end();
  return items;
};

/** Null: the message replies to nothing. */
export const replyOf = ({ values }: Form): { readonly id: number; readonly isOptional: boolean } | null => {
  const said = jsonOf(values.get('reply_parameters')) as Record<string, unknown> | undefined;
  if (said === undefined) return null;
  if (!Number.isInteger(said.message_id)) throw badRequest('message_id of reply_parameters is not an integer');
  return { id: said.message_id as number, isOptional: said.allow_sending_without_reply === true };
};
