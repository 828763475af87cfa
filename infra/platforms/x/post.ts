import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import type { Members } from './shapes.ts';

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

/** @param mediaIds X's ids of the uploaded files, in the order of the post */
export const postOf = (
  { content, overrides, thread }: Pick<PublishRequest, 'content' | 'overrides' | 'thread'>,
  mediaIds: readonly string[],
): Members => {
  const isHead = thread === null || thread.index === 0;
  const quoted = isHead ? textOf(overrides.quoteTweetId) : null;
  const settings = isHead ? replySettings[textOf(overrides.replySettings) ?? ''] : undefined;
  const replyTo = thread?.replyTo?.parent;
  return {
    ...(content === '' && mediaIds.length > 0 ? {} : { text: content }),
    ...(mediaIds.length === 0 ? {} : { media: { media_ids: mediaIds } }),
    ...(replyTo === undefined ? {} : { reply: { in_reply_to_tweet_id: replyTo } }),
    ...(quoted === null ? {} : { quote_tweet_id: postIdOf(quoted) }),
    // "everyone" is no value of X: it is the absence of one.
    ...(settings === undefined ? {} : { reply_settings: settings }),
    ...(overrides.madeWithAi === true ? { made_with_ai: true } : {}),
    ...(overrides.paidPartnership === true ? { paid_partnership: true } : {}),
  };
};

/** What X refuses of a request, found before a file is uploaded; null: nothing. */
export const refusalOf = ({ overrides, thread, media }: PublishRequest): string | null => {
  const quoted = thread === null || thread.index === 0 ? textOf(overrides.quoteTweetId) : null;
  if (quoted === null) return null;
  if (postIdOf(quoted) === null) return 'quoteTweetId is neither the id nor the address of a post on X';
  return media.length > 0 ? 'X takes a quote or media, not both' : null;
};

export const replyOf = (text: string, parent: string): Members => ({
  text,
  reply: { in_reply_to_tweet_id: parent },
});
