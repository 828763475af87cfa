import type { Json } from '#contracts/ports/platform.ts';
import type { PushedComment, PushedDiscussion, PushedReactions } from '#contracts/ports/pushed-posts.ts';
import { integerIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { codeIn } from './codes.ts';
import { idIn } from './shapes.ts';

/** What an update of the Bot API (core.telegram.org/bots/api, `Update`) tells us. */

/** The kinds that we ask for. */
export const kinds = ['message', 'channel_post', 'my_chat_member', 'message_reaction_count'];

export interface Posted {
  readonly code: string;
  readonly chatId: string;
  /** The person who wrote it, in a group; null: the chat itself, as its administrators do. */
  readonly writerId: string | null;
}

export type UpdateContent =
  | { readonly kind: 'code'; readonly posted: Posted }
  | { readonly kind: 'reactions'; readonly reactions: PushedReactions }
  | { readonly kind: 'discussion'; readonly discussion: PushedDiscussion }
  | { readonly kind: 'comment'; readonly comment: PushedComment }
  /** Of the bot itself. */
  | { readonly kind: 'rights'; readonly chatId: string };

/** Null: nothing that we keep. */
export const contentOf = (update: Json): UpdateContent | null => {
  const { channel_post, message, my_chat_member, message_reaction_count } = membersOf(update) ?? {};
  const inChannel = membersOf(channel_post);
  const inGroup = membersOf(message);
  if (inChannel !== null || inGroup !== null) {
    const posted = postedIn(inChannel, inGroup);
    if (posted !== null) return { kind: 'code', posted };
    return inGroup === null ? null : discussed(inGroup);
  }
  const chatId = idIn(membersOf(my_chat_member)?.chat, 'id');
  if (chatId !== null) return { kind: 'rights', chatId };
  const counted = membersOf(message_reaction_count);
  return counted === null ? null : reactionsIn(counted);
};

/** A forwarded command speaks for the chat that it came from, so it counts nowhere else. */
const postedIn = (inChannel: Members | null, inGroup: Members | null): Posted | null => {
  const message = inChannel ?? inGroup ?? {};
  if (message.forward_origin !== undefined || message.via_bot !== undefined) return null;
  const chatId = idIn(message.chat, 'id');
  const code = codeIn(textIn(message, 'text') ?? '');
  if (chatId === null || code === null) return null;
  if (inChannel !== null || idIn(message.sender_chat, 'id') === chatId) return { code, chatId, writerId: null };
  // Another chat speaks there, such as the channel of a stranger.
  if (message.sender_chat !== undefined) return null;
  const writerId = idIn(message.from, 'id');
  return writerId === null ? null : { code, chatId, writerId };
};

/** A post of a channel appears in its linked group by itself; the messages of its thread there are its comments. */
const discussed = (message: Members): UpdateContent | null => {
  const group = idIn(message.chat, 'id');
  const id = integerIn(message, 'message_id');
  if (group === null || id === null) return null;
  if (message.is_automatic_forward === true) {
    const place = idIn(membersOf(message.forward_origin)?.chat, 'id');
    const post = integerIn(message.forward_origin, 'message_id');
    return place === null || post === null
      ? null
      : { kind: 'discussion', discussion: { place, post, group, root: id } };
  }
  const root = integerIn(message, 'message_thread_id');
  return root === null ? null : { kind: 'comment', comment: { group, root, message: id } };
};

/** Characters of JSON. */
const maxReactions = 16_384;

const reactionsIn = (counted: Members): UpdateContent | null => {
  const place = idIn(counted.chat, 'id');
  const post = integerIn(counted, 'message_id');
  const at = integerIn(counted, 'date');
  if (place === null || post === null || at === null) return null;
  // A message has at most as many kinds of reactions as its chat allows, which are a dozen.
  if (!Array.isArray(counted.reactions) || JSON.stringify(counted.reactions).length > maxReactions) return null;
  // Without the chat, whose title may name a person.
  const said = { message_id: post, date: at, reactions: counted.reactions as Json };
  return { kind: 'reactions', reactions: { place, post, at, said } };
};

export const updateIdOf = (update: Json): number | null => integerIn(update, 'update_id');
