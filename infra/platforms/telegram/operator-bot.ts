import type { ConnectCodes } from '#contracts/ports/connect-codes.ts';
import type { CodeConnector, FinishedConsent, OfferedAccount, RefusedConnect } from '#contracts/ports/connector.ts';
import type { ApiOptions } from './api.ts';
import { codeIn, newCode } from './codes.ts';
import { checkBot, checkChat, type KnownBot } from './connect.ts';

/**
 * Connects a chat to the operator's bot, which many customers add to their chats. Which chat it is comes from a code that
 * somebody who may speak for the chat posted in it, never from a form: a name proves nothing, and this bot may post in
 * the chats of others. The same chat may be connected twice, each time by a code of its own.
 */

export interface OperatorBotOptions extends ApiOptions {
  /** Of the operator's bot. */
  readonly token: string;
  readonly codes: ConnectCodes;
}

const refused = (words: string): RefusedConnect => ({ kind: 'refused', words });

const stepsFor = (username: string, message: string): readonly string[] => [
  `In Telegram, open your channel or group and add @${username} as an administrator. In a channel, let it post messages.`,
  `Post this message there, as it stands: ${message}`,
  'Come back to this page and press the button. You can delete the message then.',
];

/** Chats that are asked for at the same time. */
const atOnce = 4;

export const operatorConnector = ({ token, codes, ...options }: OperatorBotOptions): CodeConnector => {
  // A token is always that of the same bot.
  let known: KnownBot | null = null;
  const botNow = async (signal: AbortSignal): Promise<KnownBot | RefusedConnect> => {
    if (known !== null) return known;
    const bot = await checkBot(options, { token, isOperators: true }, signal);
    if (bot.kind === 'bot') known = bot;
    return bot;
  };
  return {
    kind: 'code',
    title: 'With our bot',
    async begin(workspaceId, signal) {
      const bot = await botNow(signal);
      if (bot.kind === 'refused') return bot;
      const code = newCode();
      if (!(await codes.mint(code, workspaceId))) return refused('Too many codes are open. Try again in 15 minutes.');
      const message = `/connect ${code}`;
      return { kind: 'begun', code, message, steps: stepsFor(bot.username, message) };
    },
    async found(code, signal): Promise<FinishedConsent> {
      // What a page sends back may be anything.
      const places = codeIn(`/connect ${code}`) === null ? null : await codes.placesOf(code);
      if (places === null) return refused('This code has run out. Start again.');
      if (places.length === 0) return { kind: 'accounts', accounts: [] };
      const bot = await botNow(signal);
      if (bot.kind === 'refused') return bot;
      const accounts: OfferedAccount[] = [];
      let last: RefusedConnect | null = null;
      for (let at = 0; at < places.length; at += atOnce) {
        const some = places.slice(at, at + atOnce);
        for (const checked of await Promise.all(some.map((place) => checkChat(options, bot, place, signal)))) {
          if (checked.kind === 'connected') accounts.push(checked);
          else last = checked;
        }
      }
      return accounts.length === 0 && last !== null ? last : { kind: 'accounts', accounts };
    },
    forget: (code) => codes.forget(code),
  };
};
