/**
 * The Bot API over HTTP on this machine, as its documents have it: it refuses what they do not name, and keeps a ledger of
 * each message that was made. A call may name its target in the header `x-target`, for the ledger only.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Fault, faultOf } from './faults.ts';
import { type Form, formOf } from './form.ts';
import { methods, wrongKind } from './parameters.ts';
import { badRequest, RefusedCall, tooMany } from './refused.ts';
import { type Item, itemsOf, replyOf } from './send.ts';
import type { Bot, Chat, Made, StoredFile } from './state.ts';

type Values = Readonly<Record<string, unknown>>;

/** Kinds of updates that the network leaves out unless a listener asks for them. */
const unasked = new Set(['chat_member', 'message_reaction', 'message_reaction_count']);

export interface Seen {
  readonly method: string;
  readonly contentType: string;
  readonly body: Buffer;
}

export class TelegramSimulator {
  readonly ledger: Made[] = [];
  readonly calls: Seen[] = [];
  readonly files = new Map<string, StoredFile>();
  /** Faults that strike the next calls of a method, in their order. */
  readonly armed = new Map<string, Fault[]>();
  readonly #bots = new Map<string, Bot>();
  readonly #chats = new Map<number, Chat>();
  readonly #struck = new Set<string>();
  readonly #server: Server;
  #next = 100;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<TelegramSimulator> {
    const made = new TelegramSimulator();
    await new Promise<void>((resolve) => made.#server.listen(0, '127.0.0.1', resolve));
    return made;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  bot(): Bot {
    this.#next += 1;
    const id = 7_000_000 + this.#next;
    const made: Bot = {
      ...{
        id,
        token: `${id}:${`AA-secret_of_${this.#next}_`.padEnd(35, 'x')}`,
        username: `postline_${this.#next}_bot`,
        isRevoked: false,
      },
      ...{ quietUntil: 0, updates: [], listener: null, allowed: null, hasWebhook: false },
      joinsGroups: true,
    };
    this.#bots.set(made.token, made);
    return made;
  }

  chat(over: Partial<Chat> = {}): Chat {
    this.#next += 1;
    const made: Chat = {
      ...{ id: -1_001_234_500_000 - this.#next, type: 'channel', title: `Acme ${this.#next}`, lastId: 500 },
      ...{ messages: new Map(), rights: 'admin', movedTo: null, quietUntil: 0, members: 12_045, admins: [], ...over },
    };
    this.#chats.set(made.id, made);
    return made;
  }

  arm(method: string, ...faults: readonly Fault[]): void {
    this.armed.set(method, [...(this.armed.get(method) ?? []), ...faults]);
  }

  /** Tells the bots of something that happened in a chat, those that are in it and ask for it. */
  tell(update: Values): void {
    this.#next += 1;
    const [kind = '', about] = Object.entries(update)[0] ?? [];
    const chat = this.#chats.get((about as { readonly chat: { readonly id: number } }).chat.id);
    if (kind !== 'my_chat_member' && chat?.rights === 'kicked') return;
    // Reactions are told to administrators.
    if (kind === 'message_reaction_count' && chat?.rights === 'member') return;
    for (const bot of this.#bots.values()) {
      if (bot.allowed === null ? unasked.has(kind) : !bot.allowed.includes(kind)) continue;
      bot.updates.push({ update_id: this.#next, ...update });
      bot.listener?.(false);
    }
  }

  /** Somebody writes in a chat. */
  write(chat: Chat, text: string, from?: { readonly id: number }): void {
    chat.lastId += 1;
    const message = { message_id: chat.lastId, date: this.#now(), chat: this.#shown(chat), text };
    if (chat.type === 'channel') this.tell({ channel_post: { ...message, sender_chat: this.#shown(chat) } });
    else this.tell({ message: { ...message, ...(from === undefined ? {} : { from }) } });
  }

  /** Somebody writes below a post of a channel, in the group that is linked with it. */
  comment(group: Chat, rootId: number, text: string): void {
    group.lastId += 1;
    const root = { message_id: rootId, chat: this.#shown(group), is_automatic_forward: true };
    const message = { message_id: group.lastId, date: this.#now(), chat: this.#shown(group), text };
    this.tell({ message: { ...message, from: { id: 99 }, message_thread_id: rootId, reply_to_message: root } });
  }

  /** An administrator changes what the bots may do in the chat. */
  allow(chat: Chat, rights: Chat['rights']): void {
    const before = this.#rightsIn(chat);
    chat.rights = rights;
    const about = { chat: this.#shown(chat), from: { id: 99 }, date: this.#now() };
    this.tell({ my_chat_member: { ...about, old_chat_member: before, new_chat_member: this.#rightsIn(chat) } });
  }

  react(chat: Chat, messageId: number, counts: Readonly<Record<string, number>>): void {
    const reactions = Object.entries(counts).map(([emoji, total_count]) => ({
      ...{ type: { type: 'emoji', emoji }, total_count },
    }));
    const about = { chat: this.#shown(chat), message_id: messageId, date: this.#now(), reactions };
    this.tell({ message_reaction_count: about });
  }

  made(targetId: string): readonly Made[] {
    return this.ledger.filter((one) => one.targetId === targetId);
  }

  #now(): number {
    return Math.floor(Date.now() / 1_000);
  }

  #shown({ id, type, title, username }: Chat): Values {
    return { id, type, title, ...(username === undefined ? {} : { username }) };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const body = Buffer.concat(chunks);
    const answer = (status: number, content: unknown, headers = {}): void => {
      const text = JSON.stringify(content);
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
    };
    const refuse = ({ code, message, parameters }: RefusedCall): void => {
      const hasParameters = Object.keys(parameters).length > 0;
      const { retry_after } = parameters;
      answer(
        code,
        { ok: false, error_code: code, description: message, ...(hasParameters ? { parameters } : {}) },
        retry_after === undefined ? {} : { 'retry-after': String(retry_after) },
      );
    };
    try {
      const url = new URL(request.url ?? '/', this.origin);
      const [, token = '', named = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(url.pathname) ?? [];
      const bot = this.#bots.get(token);
      if (named === '') throw new RefusedCall(404, 'Not Found');
      if (bot === undefined || bot.isRevoked) throw new RefusedCall(401, 'Unauthorized');
      const method = Object.keys(methods).find((one) => one.toLowerCase() === named.toLowerCase());
      if (method === undefined) throw new RefusedCall(404, 'Not Found: method not found');
      const contentType = String(request.headers['content-type'] ?? '');
      this.calls.push({ method, contentType, body });
      const form = formOf(contentType, body, url.searchParams);
      if (form === null) throw badRequest("can't parse the body");
      const text = JSON.stringify([...form.values.values()]);
      const fault = this.armed.get(method)?.shift() ?? faultOf(text, this.#struck);
      if (fault?.kind === 'refuse') throw new RefusedCall(fault.code, fault.description, fault.parameters);
      if (fault?.kind === 'silent_before') return;
      if (fault?.kind === 'drop_before') return void request.socket.destroy();
      if (fault?.kind === 'met') {
        if (fault.isTaken) this.#call(bot, method, form, String(request.headers['x-target'] ?? ''));
        return fault.run();
      }
      if (fault?.kind === 'late') {
        setTimeout(() => this.#call(bot, method, form, String(request.headers['x-target'] ?? '')), fault.ms).unref();
        throw new RefusedCall(500, 'Internal Server Error');
      }
      if (method === 'getUpdates') {
        this.#judge(method, form);
        await this.#wait(bot, form);
      }
      const out = fault?.kind === 'partial' ? fault.out : Number.POSITIVE_INFINITY;
      const result = this.#call(bot, method, form, String(request.headers['x-target'] ?? ''), out);
      if (fault?.kind === 'partial') throw badRequest(`Failed to send message #${out + 1} with the error message "X"`);
      if (fault?.kind === 'silent_after') return;
      if (fault?.kind === 'drop_after') return void request.socket.destroy();
      if (fault?.kind === 'error_after') throw new RefusedCall(500, 'Internal Server Error');
      if (fault?.kind === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.ms).unref());
      answer(200, { ok: true, result });
    } catch (error) {
      refuse(error instanceof RefusedCall ? error : new RefusedCall(500, `Internal Server Error: ${String(error)}`));
    }
  }

  #call(bot: Bot, method: string, form: Form, targetId: string, out = Number.POSITIVE_INFINITY): unknown {
    this.#judge(method, form);
    if (bot.quietUntil > Date.now()) throw tooMany(Math.ceil((bot.quietUntil - Date.now()) / 1_000));
    if (method === 'getMe') {
      const rights = { can_join_groups: bot.joinsGroups, can_read_all_group_messages: false };
      return { id: bot.id, is_bot: true, first_name: 'Postline', username: bot.username, ...rights };
    }
    if (method === 'getWebhookInfo') {
      const url = bot.hasWebhook ? 'https://others.example/secret-path' : '';
      return { url, has_custom_certificate: false, pending_update_count: bot.updates.length };
    }
    if (method === 'getUpdates') return this.#updates(bot, form);
    const chat = this.#chatOf(form);
    if (chat.rights === 'kicked') throw new RefusedCall(403, `Forbidden: bot was kicked from the ${chat.type} chat`);
    if (method === 'getChatMemberCount') return chat.members;
    if (method === 'getChat') {
      const linked = chat.linkedId === undefined ? {} : { linked_chat_id: chat.linkedId };
      return { ...this.#shown(chat), ...linked, accent_color_id: 0, max_reaction_count: 11 };
    }
    if (method === 'getChatMember') return this.#member(bot, chat, Number(form.values.get('user_id')));
    if (method === 'deleteMessage') {
      if (chat.messages.delete(Number(form.values.get('message_id')))) return true;
      throw badRequest('message to delete not found');
    }
    return this.#send(chat, method, form, targetId, out);
  }

  #judge(method: string, { values, uploads, isTyped }: Form): void {
    const known = methods[method] ?? {};
    for (const [name, value] of values) {
      const parameter = known[name];
      if (parameter === undefined) throw badRequest(`unknown parameter "${name}"`);
      if (wrongKind(parameter.kind, value, isTyped)) throw badRequest(`parameter "${name}" has a wrong type`);
    }
    for (const [name, { required }] of Object.entries(known)) {
      if (required && !values.has(name) && !uploads.has(name)) {
        throw badRequest(name === 'text' ? 'message text is empty' : `${name} is empty`);
      }
    }
  }

  #chatOf({ values }: Form): Chat {
    const said = String(values.get('chat_id'));
    const chat = said.startsWith('@')
      ? [...this.#chats.values()].find(({ username }) => `@${username}`.toLowerCase() === said.toLowerCase())
      : this.#chats.get(Number(said));
    if (chat === undefined) throw badRequest('chat not found');
    return chat;
  }

  #member(bot: Bot, chat: Chat, userId: number): Values {
    if (userId !== bot.id) {
      const status = chat.admins.includes(userId) ? 'administrator' : 'member';
      return { status, user: { id: userId, is_bot: false, first_name: 'Somebody' } };
    }
    const user = { id: bot.id, is_bot: true, first_name: 'Postline', username: bot.username };
    return { ...this.#rightsIn(chat), user };
  }

  /** Of the bots in a chat. */
  #rightsIn({ rights }: Chat): Values {
    if (rights === 'member' || rights === 'kicked') return { status: rights };
    return { status: 'administrator', can_post_messages: rights === 'admin', can_delete_messages: true };
  }

  /** A second listener ends the first one. An offset confirms the updates before it, once and for all. */
  #wait(bot: Bot, { values }: Form): Promise<void> {
    if (bot.hasWebhook) {
      throw new RefusedCall(409, "Conflict: can't use getUpdates method while webhook is active; delete it first");
    }
    bot.listener?.(true);
    const allowed = values.get('allowed_updates');
    if (allowed !== undefined) {
      const kinds = (typeof allowed === 'string' ? JSON.parse(allowed) : allowed) as readonly string[];
      bot.allowed = kinds.length === 0 ? null : kinds;
    }
    const offset = Number(values.get('offset') ?? 0);
    while (bot.updates[0] !== undefined && bot.updates[0].update_id < offset) bot.updates.shift();
    const ms = Number(values.get('timeout') ?? 0) * 1_000;
    if (bot.updates.length > 0 || ms === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const listener = (isConflict: boolean): void => {
        clearTimeout(timer);
        if (bot.listener === listener) bot.listener = null;
        if (isConflict) {
          const said =
            'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running';
          reject(new RefusedCall(409, said));
        } else resolve();
      };
      const timer = setTimeout(listener, ms, false).unref();
      bot.listener = listener;
    });
  }

  #updates(bot: Bot, { values }: Form): unknown {
    return bot.updates.slice(0, Math.min(100, Math.max(1, Number(values.get('limit') ?? 100))));
  }

  #send(chat: Chat, method: string, form: Form, targetId: string, out: number): unknown {
    if (chat.movedTo !== null) {
      const said = 'Bad Request: group chat was upgraded to a supergroup chat';
      throw new RefusedCall(400, said, { migrate_to_chat_id: chat.movedTo });
    }
    if (chat.type === 'channel' && chat.rights !== 'admin') {
      throw badRequest('need administrator rights in the channel chat');
    }
    if (chat.quietUntil > Date.now()) throw tooMany(Math.ceil((chat.quietUntil - Date.now()) / 1_000));
    const items = itemsOf(method, form, this.files);
    const reply = replyOf(form);
    if (reply !== null && !chat.messages.has(reply.id) && !reply.isOptional) {
      throw badRequest('message to be replied not found');
    }
    this.#next += 1;
    const albumId = method === 'sendMediaGroup' ? `1387654321${this.#next}` : null;
    const messages = items.slice(0, out).map((item) => {
      chat.lastId += 1;
      const made: Made = {
        ...{ chatId: chat.id, messageId: chat.lastId, method, text: item.text, targetId },
        ...{ replyTo: reply?.id ?? null, albumId },
      };
      chat.messages.set(made.messageId, made);
      this.ledger.push(made);
      const message = this.#message(chat, made, item);
      this.#forward(chat, message);
      return message;
    });
    return albumId === null ? messages[0] : messages;
  }

  #message(chat: Chat, { messageId, albumId }: Made, { kind, visible, file }: Item): Values {
    const shownChat = this.#shown(chat);
    const from = chat.type === 'channel' ? { sender_chat: shownChat } : {};
    const base = { message_id: messageId, ...from, chat: shownChat, date: this.#now() };
    if (file === null) return { ...base, text: visible };
    this.#next += 1;
    const id = 'id' in file ? file.id : `AgAC${this.#next}`;
    this.files.set(id, { id, kind, upload: file.upload });
    const stored = { file_id: id, file_unique_id: `AQAD${id}`, file_size: file.upload.bytes.length };
    return {
      ...{ ...base, ...(albumId === null ? {} : { media_group_id: albumId }) },
      ...(visible === '' ? {} : { caption: visible }),
      [kind]: kind === 'photo' ? [{ ...stored, width: 90, height: 60 }] : stored,
    };
  }

  /** A post of a channel appears in its group of discussions by itself. */
  #forward(chat: Chat, message: Values): void {
    const group = chat.linkedId === undefined ? undefined : this.#chats.get(chat.linkedId);
    if (group === undefined) return;
    group.lastId += 1;
    const origin = { type: 'channel', chat: this.#shown(chat), message_id: message.message_id, date: message.date };
    const said = { ...message, message_id: group.lastId, chat: this.#shown(group) };
    this.tell({ message: { ...said, is_automatic_forward: true, forward_origin: origin } });
  }
}
