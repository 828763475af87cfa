import { pause } from '#contracts/base/pause.ts';
import type { ConnectCodes } from '#contracts/ports/connect-codes.ts';
import type { Hearer, HearingState, NetworkListener } from '#contracts/ports/network-listener.ts';
import type { Json } from '#contracts/ports/platform.ts';
import type { PushedPosts } from '#contracts/ports/pushed-posts.ts';
import { textIn } from '../shared/members.ts';
import { type ApiOptions, type ApiResult, callApi } from './api.ts';
import { isOfOperator } from './chat.ts';
import { checkBot, checkChat, type KnownBot, lossIn } from './connect.ts';
import { isDeadToken } from './errors.ts';
import { contentOf, kinds, type Posted, type UpdateContent, updateIdOf } from './updates.ts';

/**
 * Listens to the operator's bot. The network keeps an update for a day, until a call asks for later ones: the
 * listener asks for the next updates once it has stored these, so that a crash loses none. The network gives the updates
 * to one listener of a bot.
 */

export interface TelegramListenerOptions extends ApiOptions {
  readonly token: string;
  readonly codes: Pick<ConnectCodes, 'open' | 'take' | 'spoke'>;
  readonly pushed: Pick<PushedPosts, 'keep'>;
  /** Seconds that the network waits for an update. Default 25. */
  readonly waitSeconds?: number;
  /** Milliseconds before the next call after an error that names no time. */
  readonly pauses?: Partial<Pauses>;
  /** Milliseconds that a question about a chat or a person may take. Default 10,000. */
  readonly answerMs?: number;
}

type Pauses = Readonly<Record<'hearing' | 'unavailable' | 'conflict', number>>;

const perCall = 100;
/** The network answers within seconds of its wait, or not at all. */
const patienceMs = 15_000;
/** Shortest and longest wait that the network may ask for. Milliseconds. */
const minPauseMs = 1_000;
const maxPauseMs = 600_000;
const usualPauses: Pauses = { hearing: 5_000, unavailable: 5_000, conflict: 10_000 };
/** An update that cannot be judged is left out after this many tries, or it would keep all others from us. */
const maxTries = 3;

const subject = { accountId: '', targetId: null };

export class TelegramListener implements NetworkListener {
  readonly name: string;
  readonly #options: TelegramListenerOptions;

  constructor(options: TelegramListenerOptions) {
    this.#options = options;
    // The public part of the token.
    this.name = `telegram ${options.token.split(':')[0]}`;
  }

  concerns(...[credential]: Parameters<NetworkListener['concerns']>): boolean {
    return isOfOperator(credential);
  }

  async listen(hearer: Hearer, signal: AbortSignal): Promise<void> {
    const pauses = { ...usualPauses, ...this.#options.pauses };
    const reader = new UpdateReader(this.#options, hearer, signal);
    let offset = 0;
    let limit = perCall;
    while (!signal.aborted) {
      const result = await this.#ask(offset, limit, signal);
      if (signal.aborted) return;
      if (result.kind !== 'ok') {
        // Strangers can make a hundred updates longer than an answer may be; one alone never is.
        if (result.kind === 'silent' && result.reason === 'answer_too_long' && limit > 1) {
          limit = Math.ceil(limit / 4);
          continue;
        }
        const state = stateOf(result);
        hearer.state(state);
        // Another process may have been given another token.
        if (state.kind === 'refused') return;
        const named = result.kind === 'refused' && result.retryAfter !== null ? result.retryAfter * 1_000 : null;
        const wait = named === null ? pauses[state.kind] : Math.max(named, minPauseMs);
        await pause(Math.min(wait, maxPauseMs), signal);
        continue;
      }
      hearer.state({ kind: 'hearing' });
      limit = Math.min(perCall, limit * 2);
      const taken = await reader.take(Array.isArray(result.result) ? result.result : []);
      offset = taken.offset ?? offset;
      if (taken.isStopped) await pause(pauses.hearing, signal);
    }
  }

  #ask(offset: number, limit: number, signal: AbortSignal): Promise<ApiResult> {
    const { token, waitSeconds = 25 } = this.#options;
    const fields = {
      ...(offset === 0 ? {} : { offset }),
      ...{ limit, timeout: waitSeconds, allowed_updates: kinds },
    };
    const until = AbortSignal.any([signal, AbortSignal.timeout(waitSeconds * 1_000 + patienceMs)]);
    // Its answer holds codes and what strangers wrote.
    return callApi(this.#options, { token, method: 'getUpdates', fields, subject, isSecret: true }, until);
  }
}

const stateOf = (result: Exclude<ApiResult, { readonly kind: 'ok' }>): Exclude<HearingState, { kind: 'hearing' }> => {
  if (result.kind !== 'refused') return { kind: 'unavailable', reason: result.reason };
  const reason = `${result.code} ${result.description}`;
  if (isDeadToken(result.code)) return { kind: 'refused', reason };
  return { kind: result.code === 409 ? 'conflict' : 'unavailable', reason };
};

interface Update {
  readonly id: number | null;
  readonly what: UpdateContent | null;
}

/** The listener asks the network for the present rights in a chat, so one question serves all updates about them. */
const latestRights = (updates: readonly Update[]): readonly Update[] => {
  const last = new Map(
    updates.flatMap(({ what }, at) => (what?.kind === 'rights' ? [[what.chatId, at] as const] : [])),
  );
  return updates.map((update, at) =>
    update.what?.kind === 'rights' && last.get(update.what.chatId) !== at ? { ...update, what: null } : update,
  );
};

/** Handles the updates in the answers of the network, one answer at a time. */
class UpdateReader {
  readonly #options: TelegramListenerOptions;
  readonly #hearer: Hearer;
  readonly #signal: AbortSignal;
  #bot: KnownBot | null = null;
  /** The update at which we stopped last, and how often. */
  #stuck = { id: -1, tries: 0 };

  constructor(options: TelegramListenerOptions, hearer: Hearer, signal: AbortSignal) {
    this.#options = options;
    this.#hearer = hearer;
    this.#signal = signal;
  }

  /**
   * Stores the figures of all updates at once, and judges in their order the updates about which it must ask the network.
   * @returns `offset`: of the next call, null: as it was. `isStopped`: at an update that cannot be judged now
   */
  async take(updates: readonly Json[]): Promise<{ readonly offset: number | null; readonly isStopped: boolean }> {
    const latest = latestRights(updates.map((update) => ({ id: updateIdOf(update), what: contentOf(update) })));
    const whats = latest.flatMap(({ what }) => (what === null ? [] : [what]));
    const [open, places] = await Promise.all([this.#openCodes(whats), this.#connectedPlaces(whats)]);
    await this.#keepFigures(whats, places);
    let offset: number | null = null;
    for (const { id, what } of latest) {
      if (this.#signal.aborted) return { offset, isStopped: true };
      if (what !== null && !(await this.#judge(what, open, places)) && this.#mayTryAgain(id)) {
        return { offset, isStopped: true };
      }
      if (id !== null) offset = id + 1;
    }
    return { offset, isStopped: false };
  }

  async #openCodes(whats: readonly UpdateContent[]): Promise<ReadonlySet<string>> {
    const posted = whats.flatMap((what) => (what.kind === 'code' ? [what.posted.code] : []));
    return this.#options.codes.open([...new Set(posted)]);
  }

  async #connectedPlaces(whats: readonly UpdateContent[]): Promise<ReadonlySet<string>> {
    const places = whats.flatMap((what) => {
      if (what.kind === 'reactions') return [what.reactions.place];
      if (what.kind === 'discussion') return [what.discussion.place];
      return what.kind === 'rights' ? [what.chatId] : [];
    });
    return places.length === 0 ? new Set() : this.#hearer.connected([...new Set(places)]);
  }

  async #keepFigures(whats: readonly UpdateContent[], places: ReadonlySet<string>): Promise<void> {
    const reactions = whats.flatMap((what) => (what.kind === 'reactions' ? [what.reactions] : []));
    const discussions = whats.flatMap((what) => (what.kind === 'discussion' ? [what.discussion] : []));
    const pushed = {
      reactions: reactions.filter(({ place }) => places.has(place)),
      discussions: discussions.filter(({ place }) => places.has(place)),
      comments: whats.flatMap((what) => (what.kind === 'comment' ? [what.comment] : [])),
    };
    if (Object.values(pushed).some(({ length }) => length > 0)) await this.#options.pushed.keep(pushed);
  }

  /** False: not now. */
  async #judge(what: UpdateContent, open: ReadonlySet<string>, places: ReadonlySet<string>): Promise<boolean> {
    if (what.kind === 'code') return !open.has(what.posted.code) || this.#posted(what.posted);
    if (what.kind !== 'rights' || !places.has(what.chatId)) return true;
    return this.#hearer.changed(what.chatId, () => this.#loss(what.chatId));
  }

  async #posted(posted: Posted): Promise<boolean> {
    const { codes } = this.#options;
    // Each try may cost a call, so a code that is posted everywhere ends.
    if (!(await codes.take(posted.code))) return true;
    const speaks = await this.#speaks(posted);
    if (speaks) await codes.spoke(posted.code, posted.chatId);
    return speaks !== null;
  }

  /** Whether the writer of a code may connect the chat. Null: the network did not say. */
  async #speaks({ chatId, writerId }: Posted): Promise<boolean | null> {
    if (writerId === null) return true;
    const fields = { chat_id: Number(chatId), user_id: Number(writerId) };
    const { token } = this.#options;
    const asked = { token, method: 'getChatMember', fields, subject };
    const member = await callApi(this.#options, asked, this.#patience());
    if (member.kind === 'refused' && member.code < 500 && member.code !== 429) return false;
    if (member.kind !== 'ok') return null;
    const status = textIn(member.result, 'status');
    return status === 'creator' || status === 'administrator';
  }

  async #loss(chatId: string): Promise<string | null | undefined> {
    const until = this.#patience();
    if (this.#bot === null) {
      const bot = await checkBot(this.#options, { token: this.#options.token, isOperators: true }, until);
      if (bot.kind === 'refused') return undefined;
      this.#bot = bot;
    }
    return lossIn(await checkChat(this.#options, this.#bot, chatId, until));
  }

  /** A network that is silent must not keep us from what it tells. */
  #patience(): AbortSignal {
    return AbortSignal.any([this.#signal, AbortSignal.timeout(this.#options.answerMs ?? 10_000)]);
  }

  #mayTryAgain(id: number | null): boolean {
    if (id === null) return false;
    this.#stuck = { id, tries: this.#stuck.id === id ? this.#stuck.tries + 1 : 1 };
    return this.#stuck.tries < maxTries;
  }
}
