import { createHash } from 'node:crypto';
import type { Json, PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import { permalinkOf, titleFor } from '#domain/platforms/index.ts';
import type { Ask } from '../kit/client.ts';
import type { Bound } from '../kit/network.ts';
import {
  asAsked,
  askAbout,
  type Between,
  comparable,
  findAll,
  lookFor,
  type OwnPosts,
  skewMs,
} from '../kit/own-posts.ts';
import { type Members, textIn } from '../shared/members.ts';
import type { By, Source } from './media.ts';

/**
 * The body of `POST /pins`, and the same pin as Pinterest lists it: a pin whose answer was lost is looked for on its board,
 * by the time of the call, title, description, link and kind. What is not there proves nothing.
 */

export const isId = (id: string): boolean => /^\d{1,30}$/.test(id);

export const linkTo = (id: string): string | null => permalinkOf('pinterest', { id, username: null, account: '' });

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value.trim() : '');

export const boardOf = ({ overrides }: Pick<PublishRequest, 'overrides'>): string => textOf(overrides.boardId);

/** Pinterest takes one text for those who do not see the pin, of this many characters. */
const maxAltText = 500;

/** Those of all pictures, in their order, as many as fit. */
const altTextOf = ({ media }: PublishRequest): string => {
  let text = '';
  for (const { altText } of media) {
    const more = [text, altText ?? ''].filter((one) => one !== '').join('\n');
    if ([...more].length <= maxAltText) text = more;
  }
  return text;
};

const shownOf = ({ content, overrides }: PublishRequest) => ({
  title: titleFor('pinterest', content, overrides)?.trim() ?? '',
  description: content,
  link: textOf(overrides.link),
});

export const pinOf = (request: PublishRequest, source: Source['source']): Source['source'] => {
  const { title, description, link } = shownOf(request);
  const altText = altTextOf(request);
  return {
    board_id: boardOf(request),
    ...(title === '' ? {} : { title }),
    ...(description === '' ? {} : { description }),
    ...(link === '' ? {} : { link }),
    ...(altText === '' ? {} : { alt_text: altText }),
    media_source: source,
  };
};

const hashOf = (request: PublishRequest): string =>
  createHash('sha256')
    .update(JSON.stringify([boardOf(request), shownOf(request), request.media.map(({ sha256 }) => sha256)]))
    .digest('hex');

export const boundaryOf = (request: PublishRequest, by: By, now: number): Json => ({
  at: new Date(now).toISOString(),
  contentHash: hashOf(request),
  by,
});

/** The most that Pinterest gives. */
const perPage = 250;
const maxPages = 4;

/** Pinterest writes times without a zone; they are of UTC. */
const timeOf = (pin: Members): number => {
  const text = textIn(pin, 'created_at') ?? '';
  return Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
};

const addressOf = (text: string | null): string =>
  text !== null && URL.canParse(text) ? new URL(text).href : (text ?? '');

const kindOf = ({ media }: PublishRequest): string => {
  if (media[0]?.kind === 'video') return 'video';
  return media.length > 1 ? 'multiple_images' : 'image';
};

const isIt = (pin: Members, request: PublishRequest): boolean => {
  const { title, description, link } = shownOf(request);
  const kind = textIn(pin.media, 'media_type');
  // Others may pin to a board of several people.
  return (
    pin.is_owner !== false &&
    comparable(textIn(pin, 'title')) === comparable(title) &&
    comparable(textIn(pin, 'description')) === comparable(description) &&
    addressOf(textIn(pin, 'link')) === addressOf(link) &&
    (kind === null || kind === kindOf(request))
  );
};

/** Pins of the request's board. */
const ownPins = (
  bound: Bound,
  request: PublishRequest,
  between: Partial<Between> & Pick<Between, 'since'>,
): OwnPosts => {
  const ask = (cursor: string | null): Ask => ({
    ...{ method: 'GET', path: `/boards/${boardOf(request)}/pins` },
    query: { page_size: String(perPage), ...(cursor === null ? {} : { bookmark: cursor }) },
  });
  return {
    ...{ list: 'items', ...between, at: timeOf, isIt: (pin) => isIt(pin, request), maxPages, isUnordered: true },
    page: (cursor) => askAbout(bound, request, ask(cursor)),
    next: (body) => textIn(body, 'bookmark'),
    show: (pin) => {
      const externalId = textIn(pin, 'id') ?? '';
      return isId(externalId) ? { externalId, permalink: linkTo(externalId) } : null;
    },
  };
};

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, { data }) => {
    const at = Date.parse(textIn(data, 'at') ?? '');
    // With another text the search would find the wrong pin.
    if (Number.isNaN(at) || textIn(data, 'contentHash') !== hashOf(request)) return { kind: 'undecided' };
    return lookFor(ownPins(bound, request, { since: at - skewMs }), bound.clock);
  };

export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    if (!isId(boardOf(request))) return { kind: 'not_askable' };
    return findAll(ownPins(bound, request, asAsked(request)), bound.clock);
  };
