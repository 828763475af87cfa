import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { permalinkOf } from '#domain/platforms/index.ts';
import type { Members } from '../shared/members.ts';
import { isOrganization } from './tables.ts';

/** The body of `POST /rest/posts`, whose text has a format of its own ("little text format"). */

const escaped = (text: string): string => text.replaceAll(/[\\|{}@[\]()<>#*_~]/g, '\\$&');

/**
 * An address, in which no sign is markup; a mention as LinkedIn writes it, whose name must be that of the member or
 * organization; a hashtag, which has a letter.
 */
const marked =
  /(https?:\/\/\S+)|@\[([^[\]\n]{1,200})\]\((urn:li:(?:person|organization):[\w-]{1,60})\)|(?<![^\s([{"'“„«‘])([#＃])(?=[\p{N}_]*\p{L})([\p{L}\p{N}_]{1,100})/gu;

/** As LinkedIn reads it. A sign that is left unescaped cuts a post off without a word. */
export const little = (text: string): string => {
  let out = '';
  let from = 0;
  for (const found of text.matchAll(marked)) {
    const [whole, , name, urn, sign, tag] = found;
    out += escaped(text.slice(from, found.index));
    if (name !== undefined) out += `@[${escaped(name)}](${urn})`;
    else if (tag !== undefined) out += `{hashtag|\\${sign}|${escaped(tag)}}`;
    else out += escaped(whole);
    from = found.index + whole.length;
  }
  return out + escaped(text.slice(from));
};

/** What readers see of little text, however it is written. */
export const shownText = (text: string): string =>
  text.replaceAll(
    /\{hashtag\|\\?([#＃])\|((?:\\.|[^\\}]){0,200})\}|@\[((?:\\.|[^\\\]]){0,200})\]\([^)]{0,200}\)|\\(.)/gsu,
    (_, sign?: string, tag?: string, name?: string, one?: string) => {
      if (one !== undefined) return one;
      return tag === undefined ? `@${shownText(name ?? '')}` : `${sign}${shownText(tag)}`;
    },
  );

/** LinkedIn shows a document by its title alone: the first line of the text. */
const titleOf = (content: string): string => {
  const line = content.split('\n').find((one) => one.trim() !== '') ?? 'Document';
  return [...line.trim()].slice(0, 100).join('');
};

const mediumOf = ({ altText }: PublishMedia, id: string): Members => ({ id, ...(altText === null ? {} : { altText }) });

const contentOf = (
  { content, media }: PublishRequest,
  ids: readonly string[],
  article: Members | null,
): Members | null => {
  const [first] = media;
  const [id = ''] = ids;
  if (first === undefined) return article === null ? null : { article };
  if (media.length > 1) return { multiImage: { images: media.map((one, at) => mediumOf(one, ids[at] ?? '')) } };
  if (first.kind === 'document') return { media: { id, title: titleOf(content) } };
  return { media: first.kind === 'video' ? { id } : mediumOf(first, id) };
};

/** @param ids LinkedIn's ids of the uploaded files, in the order of the post @param article a page that the text leads to */
export const postOf = (request: PublishRequest, ids: readonly string[], article: Members | null): Members => {
  const content = contentOf(request, ids, article);
  return {
    author: request.account.externalId,
    commentary: little(request.content),
    visibility: request.overrides.visibility === 'CONNECTIONS' ? 'CONNECTIONS' : 'PUBLIC',
    distribution: { feedDistribution: 'MAIN_FEED', targetEntities: [], thirdPartyDistributionChannels: [] },
    ...(content === null ? {} : { content }),
    lifecycleState: 'PUBLISHED',
    isReshareDisabledByAuthor: false,
  };
};

/** What LinkedIn refuses of a request, found before a file is uploaded; null: nothing. */
export const refusalOf = ({ account, overrides }: PublishRequest): string | null =>
  isOrganization(account.externalId) && overrides.visibility === 'CONNECTIONS'
    ? 'visibility CONNECTIONS is for members: an organization has none'
    : null;

export const linkTo = ({ account }: Pick<PublishRequest, 'account'>, id: string): string | null =>
  permalinkOf('linkedin', { id, username: account.username, account: account.externalId });
