import { type Answer, invalidRequest, refuse } from './answer.ts';
import { statusOf } from './media.ts';
import { accessOf, emptyOf, jsonOf, type Request, single } from './request.ts';
import type { Board, Pin, State } from './state.ts';
import { type Check, flag, id, list, object, oneOf, text, whole } from './strict.ts';

/** "Create Pin", "Get Pin", "Delete Pin", "List Pins on board", "List boards". OpenAPI 5.23.0: no member beside these. */

const all = ['boards:read', 'boards:write', 'pins:read', 'pins:write'] as const;
const type = oneOf('image/jpeg', 'image/png');
const data = text(/^[a-zA-Z0-9+/=]+$/);
const sourceType = (name: string) => ({ source_type: oneOf(name) });
const shown = { title: text(), description: text(), link: text() };

const sources: Readonly<Record<string, Check>> = {
  image_base64: object({ ...sourceType('image_base64'), content_type: type, data, is_standard: flag }, [
    ...['source_type', 'content_type', 'data'],
  ]),
  image_url: object({ ...sourceType('image_url'), url: text(), is_standard: flag }, ['source_type', 'url']),
  video_id: object(
    {
      ...{ ...sourceType('video_id'), media_id: id, is_standard: flag, cover_image_url: text() },
      ...{ cover_image_content_type: type, cover_image_data: text(), cover_image_key_frame_time: whole },
    },
    ['source_type', 'media_id'],
  ),
  multiple_image_base64: object(
    {
      ...sourceType('multiple_image_base64'),
      items: list(2, 5, object({ ...shown, content_type: type, data }, ['content_type', 'data'])),
      index: whole,
    },
    ['source_type', 'items'],
  ),
  multiple_image_urls: object(
    {
      ...sourceType('multiple_image_urls'),
      items: list(2, 5, object({ ...shown, url: text() }, ['url'])),
      index: whole,
    },
    ['source_type', 'items'],
  ),
};

const source: Check = (value, path) => {
  const check = sources[String((value as { source_type?: unknown } | null)?.source_type)];
  if (check === undefined)
    throw invalidRequest(`'${path}.source_type' is not one of ${Object.keys(sources).join(', ')}`);
  check(value, path);
};

const create = object(
  {
    ...{ board_id: id, board_section_id: id, title: text(undefined, 100), description: text(undefined, 800) },
    ...{ link: text(/^https?:\/\//, 2_048), alt_text: text(undefined, 500), dominant_color: text(/^#[\dA-F]{6}$/i) },
    ...{ parent_pin_id: id, sponsor_id: id, media_source: source },
  },
  ['board_id', 'media_source'],
);

interface Item {
  readonly url?: string;
  readonly data?: string;
}

interface CreateBody {
  readonly board_id: string;
  readonly media_source: Item & {
    readonly source_type: string;
    readonly items?: readonly Item[];
    readonly index?: number;
    readonly media_id?: string;
    readonly cover_image_url?: string;
    readonly cover_image_data?: string;
    readonly cover_image_key_frame_time?: number;
  };
}

const mayPin = (board: Board, personId: string): boolean =>
  board.ownerId === personId || board.collaborators.includes(personId);

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Of a PNG or a JPEG, else it is none. @throws Refusal */
const sizeOf = (picture: Buffer): Size => {
  if (picture.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n') {
    return { width: picture.readUInt32BE(16), height: picture.readUInt32BE(20) };
  }
  for (let at = 2; picture.readUInt16BE(0) === 0xff_d8 && at + 9 < picture.length; ) {
    const marker = picture.readUInt16BE(at);
    const isFrame = marker >= 0xff_c0 && marker <= 0xff_cf && ![0xff_c4, 0xff_c8, 0xff_cc].includes(marker);
    if (isFrame) return { width: picture.readUInt16BE(at + 7), height: picture.readUInt16BE(at + 5) };
    at += 2 + picture.readUInt16BE(at + 2);
  }
  throw refuse('image_format');
};

/** What Pinterest gets of a picture. @throws Refusal */
const pictureOf = (state: State, { url, data: text }: Item): Buffer => {
  const picture = url === undefined ? Buffer.from(text ?? '', 'base64') : state.web.get(url);
  if (picture === undefined) throw refuse('image_unreachable');
  const { width, height } = sizeOf(picture);
  if (Math.min(width, height) < 200) throw refuse('image_small');
  return picture;
};

const checkRatios = (pictures: readonly Buffer[]): void => {
  const ratios = pictures.map(sizeOf).map(({ width, height }) => width / height);
  if (ratios.some((one) => Math.abs(one - (ratios[0] ?? 0)) > 0.01)) throw refuse('ratios');
};

type Shown = Pick<Pin, 'kind' | 'pictures' | 'mediaId'>;

const videoOf = (state: State, personId: string, { media_source: given }: CreateBody): Shown => {
  const { media_id: mediaId = '', cover_image_url: url, cover_image_data: picture } = given;
  const upload = state.uploads.get(mediaId);
  if (upload === undefined || upload.personId !== personId) throw refuse('media_not_found');
  const status = statusOf(upload);
  if (status === 'failed') throw refuse('media_failed');
  if (status !== 'succeeded') throw refuse('media_not_ready');
  const covers = [url, picture, given.cover_image_key_frame_time].filter((one) => one !== undefined).length;
  if (covers !== 1) throw invalidRequest('a video needs one cover image');
  const item = url === undefined ? { data: picture ?? '' } : { url };
  const isPicture = url !== undefined || picture !== undefined;
  return { kind: 'video', pictures: isPicture ? [pictureOf(state, item)] : [], mediaId };
};

const shownOf = (state: State, personId: string, body: CreateBody): Shown => {
  const { media_source: given } = body;
  if (given.source_type === 'video_id') return videoOf(state, personId, body);
  const items = given.items ?? [given];
  if ((given.index ?? 0) >= items.length) throw invalidRequest("'index' is beyond the items");
  const pictures = items.map((item) => pictureOf(state, item));
  checkRatios(pictures);
  return { kind: items.length > 1 ? 'multiple_images' : 'image', pictures, mediaId: null };
};

export const createPin = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, ...all);
  object({})(single(request.query), 'query');
  const body = jsonOf(request);
  create(body, 'body');
  if (state.tier === 'trial' && state.trialRefuses) throw refuse('trial_access');
  const asked = body as CreateBody;
  const board = state.boards.get(asked.board_id);
  if (board === undefined || (board.privacy === 'SECRET' && board.ownerId !== personId))
    throw refuse('board_not_found');
  if (!mayPin(board, personId)) throw refuse('forbidden');
  const pin: Pin = {
    ...{ id: state.id(), personId, boardId: board.id, body: body as Pin['body'], at: state.now() },
    ...shownOf(state, personId, asked),
  };
  state.pins.push(pin);
  return { status: 201, body: pinShown(state, pin, personId, false) };
};

const textAt = (body: Pin['body'], name: string): string | null => {
  const value = body[name];
  return typeof value === 'string' ? value : null;
};

/** Without a zone: it is of UTC. */
const timeOf = (at: number): string => new Date(at).toISOString().slice(0, 19);

const pictureShown = { width: 600, height: 900, url: 'https://i.pinimg.com/600x/0d/f6/f1/0df6f1f0.jpg' };

const mediaShown = ({ kind, pictures }: Pin): object => {
  if (kind === 'image') return { media_type: 'image', images: { '600x': pictureShown } };
  if (kind === 'video') {
    return { media_type: 'video', duration: null, width: null, height: null, cover_image_url: pictureShown.url };
  }
  const items = pictures.map(() => ({ item_type: 'image', images: { '600x': pictureShown } }));
  return { media_type: 'multiple_images', items };
};

const pinShown = (state: State, pin: Pin, personId: string, withMetrics: boolean): object => {
  const { body, boardId, kind } = pin;
  const board = state.boards.get(boardId);
  const owner = state.people.get(board?.ownerId ?? '');
  const texts = Object.fromEntries(
    ['title', 'description', 'link', 'alt_text', 'dominant_color', 'board_section_id', 'parent_pin_id'].map((name) => [
      ...[name, textAt(body, name)],
    ]),
  );
  const days = Math.max(0, Math.floor((state.now() - pin.at) / 3_600_000));
  const counts = { pin_click: 7 + days, impression: 40 + days, clickthrough: 3 };
  return {
    ...{ id: pin.id, created_at: timeOf(pin.at), board_id: boardId, board_owner: { username: owner?.username ?? '' } },
    ...texts,
    ...{ creative_type: kind === 'video' ? 'VIDEO' : kind === 'image' ? 'REGULAR' : 'CAROUSEL' },
    ...{ is_owner: pin.personId === personId, is_standard: true, has_been_promoted: false, media: mediaShown(pin) },
    pin_metrics: withMetrics ? { '90d': counts, lifetime_metrics: { ...counts, reaction: 10, comment: 2 } } : null,
  };
};

export const showPin = (state: State, request: Request, pinId: string): Answer => {
  const { personId } = accessOf(state, request, 'boards:read', 'pins:read');
  emptyOf(request);
  const query = single(request.query);
  object({ pin_metrics: oneOf('true', 'false'), ad_account_id: id })(query, 'query');
  const pin = state.pin(pinId);
  if (pin === null) throw refuse('pin_not_found');
  return { status: 200, body: pinShown(state, pin, personId, query.pin_metrics === 'true') };
};

export const deletePin = (state: State, request: Request, pinId: string): Answer => {
  const { personId } = accessOf(state, request, ...all);
  emptyOf(request);
  object({})(single(request.query), 'query');
  const pin = state.pin(pinId);
  if (pin === null) throw refuse('pin_not_found');
  if (pin.personId !== personId) throw refuse('forbidden');
  state.deleted.add(pinId);
  return { status: 204, body: '' };
};

const paged = object({ page_size: text(/^\d+$/), bookmark: text() });

/** A page of them, and a bookmark where there are more. @throws Refusal */
const pageOf = <T>(request: Request, items: readonly T[], show: (item: T) => object): Answer => {
  const query = single(request.query);
  paged(query, 'query');
  const size = Number(query.page_size ?? 25);
  if (size < 1 || size > 250) throw invalidRequest("'page_size' must be 1 to 250");
  const from = query.bookmark === undefined ? 0 : Number(/^b(\d+)$/.exec(query.bookmark)?.[1] ?? Number.NaN);
  if (Number.isNaN(from)) throw invalidRequest("'bookmark' is none of ours");
  const bookmark = from + size < items.length ? `b${from + size}` : null;
  return { status: 200, body: { items: items.slice(from, from + size).map(show), bookmark } };
};

export const listPins = (state: State, request: Request, boardId: string): Answer => {
  const { personId } = accessOf(state, request, 'boards:read', 'pins:read');
  emptyOf(request);
  const board = state.boards.get(boardId);
  if (board === undefined || !mayPin(board, personId)) throw refuse('board_not_found_by_status');
  const pins = state.pins.filter((one) => one.boardId === boardId && !state.deleted.has(one.id)).reverse();
  return pageOf(request, pins, (pin) => pinShown(state, pin, personId, false));
};

export const listBoards = (state: State, request: Request): Answer => {
  const { personId, scopes } = accessOf(state, request, 'boards:read');
  emptyOf(request);
  const isShown = (board: Board): boolean =>
    mayPin(board, personId) && (board.privacy !== 'SECRET' || scopes.includes('boards:read_secret'));
  const boards = [...state.boards.values()].filter(isShown).reverse();
  return pageOf(request, boards, ({ id: boardId, name, privacy, ownerId, at, collaborators }) => ({
    ...{ id: boardId, name, privacy, description: '', created_at: timeOf(at) },
    ...{ owner: { username: state.people.get(ownerId)?.username ?? '' } },
    ...{ pin_count: 0, follower_count: 3, collaborator_count: collaborators.length },
  }));
};
