import type { Json } from '#contracts/ports/platform.ts';

/** The network tells of reactions and replies in updates only, while somebody listens: who listens keeps what they told. */
export interface HeardFigures {
  /** Of the posts of one chat, by the number of the message. A post of which nothing was heard is absent. */
  of(chatId: string, messageIds: readonly number[], signal: AbortSignal): Promise<ReadonlyMap<number, Heard>>;
}

/** In the members that `services/domain/platforms/telegram/insights.ts` reads. */
export interface Heard {
  /** The newest update of the message, as it came. */
  readonly message_reaction_count?: Json;
  /** Present where the chat has a linked group. */
  readonly discussion?: { readonly messages: number };
}
