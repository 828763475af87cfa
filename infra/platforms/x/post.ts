import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import { permalinkOf } from '#domain/platforms/index.ts';
import type { Members } from '../shared/members.ts';

/** The body of `POST /2/tweets`, which refuses every member that it does not know. */

/** An address of a post has its id at the end. */
export const postIdOf = (given: string): string | null => {
  const text = given.trim().slice(0, 2_048);
  if (/^\d{1,19}$/.test(text)) return text;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(?:www\.|mobile\.)?(?:x|twitter)\.com$/.test(url.hostname)) return null;
  return /\/status\/(\d{1,19})(?:\/|$)/.exec(url.pathname)?.[1] ?? null;
};

/** `verifiedOnly` is the word of an earlier interface. */
const replySettings: Readonly<Record<string, string>> = {
  following: 'following',
  mentionedUsers: 'mentionedUsers',
  subscribers: 'subscribers',
  verified: 'verified',
  verifiedOnly: 'verified',
};

const textOf = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null);

const isHead = ({ thread }: Pick<PublishRequest, 'thread'>): boolean => thread === null || thread.index === 0;

/** What the owner gave as the post to quote; null: nothing. Only the head of a thread quotes. */
const quoteGiven = (request: Pick<PublishRequest, 'overrides' | 'thread'>): string | null =>
  isHead(request) ? textOf(request.overrides.quoteTweetId) : null;

/** Id of the post that this one quotes; null: none. */
export const quotedId = (request: Pick<PublishRequest, 'overrides' | 'thread'>): string | null => {
  const given = quoteGiven(request);
  return given === null ? null : postIdOf(given);
};

/** @param mediaIds X's ids of the uploaded files, in the order of the post */
export const postOf = (
  request: Pick<PublishRequest, 'content' | 'overrides' | 'thread'>,
  mediaIds: readonly string[],
): Members => {
  const { content, overrides, thread } = request;
  const quoted = quotedId(request);
  const settings = isHead(request) ? replySettings[textOf(overrides.replySettings) ?? ''] : undefined;
  const replyTo = thread?.replyTo?.parent;
  return {
    ...(content === '' && mediaIds.length > 0 ? {} : { text: content }),
    ...(mediaIds.length === 0 ? {} : { media: { media_ids: mediaIds } }),
    ...(replyTo === undefined ? {} : { reply: { in_reply_to_tweet_id: replyTo } }),
    ...(quoted === null ? {} : { quote_tweet_id: quoted }),
    // "everyone" is no value of X: it is the absence of one.
    ...(settings === undefined ? {} : { reply_settings: settings }),
    ...(overrides.madeWithAi === true ? { made_with_ai: true } : {}),
    ...(overrides.paidPartnership === true ? { paid_partnership: true } : {}),
  };
};

/** What X refuses of a request, found before a file is uploaded; null: nothing. */
export const refusalOf = (request: PublishRequest): string | null => {
  if (quoteGiven(request) === null) return null;
  if (quotedId(request) === null) return 'quoteTweetId is neither the id nor the address of a post on X';
  return request.media.length > 0 ? 'X takes a quote or media, not both' : null;
};

export const replyOf = (text: string, parent: string): Members => ({
  text,
  reply: { in_reply_to_tweet_id: parent },
});

export const linkTo = ({ account }: Pick<PublishRequest, 'account'>, id: string): string | null =>
  permalinkOf('x', { id, username: account.username, account: account.externalId });
