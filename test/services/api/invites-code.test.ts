/** A guest who proves by a code which chat of Telegram is theirs: the real connector, over a strict Bot API. */
import assert from 'node:assert/strict';
import { type ConnectCodes, codeLimits } from '#contracts/ports/connect-codes.ts';
import { accountIdOf } from '#domain/ids.ts';
import { invite } from '#domain/invite.ts';
import { operatorConnector, ownBotConnector, TelegramListener } from '#infra/platforms/telegram/index.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { Guest, Shown } from '#test/support/guest.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

type World = Awaited<ReturnType<typeof liveWorld>>;

suite('a guest connects a chat by a code', (t) => {
  let network: TelegramSimulator;
  let bot: Bot;
  let it: World;
  const stop = new AbortController();
  let listening = Promise.resolve();
  /** Before the places of a code are read. */
  let gate = async (): Promise<void> => {};

  t.before(async () => {
    network = await TelegramSimulator.start();
    bot = network.bot();
    const ofBot = { api: network.origin, token: bot.token };
    it = await liveWorld(({ http, codes }) => {
      const gated: ConnectCodes = {
        ...{ mint: codes.mint.bind(codes), open: codes.open.bind(codes), take: codes.take.bind(codes) },
        ...{ spoke: codes.spoke.bind(codes), forget: codes.forget.bind(codes), sweep: codes.sweep.bind(codes) },
        placesOf: async (code) => {
          await gate();
          return codes.placesOf(code);
        },
      };
      const ownBot = ownBotConnector({ http, api: network.origin });
      return { telegram: [operatorConnector({ ...ofBot, http, codes: gated }), ownBot] };
    });
    const { http, codes, pushed } = { http: it.http, codes: it.codes, pushed: { keep: async () => undefined } };
    const hearer = { connected: async () => new Set<string>(), changed: async () => true, state: () => undefined };
    const pauses = { hearing: 1, unavailable: 1, conflict: 1 };
    listening = new TelegramListener({ ...ofBot, http, codes, pushed, pauses }).listen(hearer, stop.signal);
  });
  t.after(async () => {
    stop.abort();
    await listening;
    await it?.close();
    network?.close();
  });

  interface Link {
    readonly clientId: string;
    readonly inviteId: string;
    readonly path: string;
  }
  let clients = 0;
  const linkOf = async (by = it.world.owner, more: object = {}): Promise<Link> => {
    clients += 1;
    const { id: clientId } = (await by.post('/clients', { name: `Café & Söhne ${clients}`, type: 'brand' })).data;
    const made = await by.post(`/clients/${clientId}/connect-invites`, { platforms: ['telegram'], ...more });
    assert.equal(made.status, 200, made.text);
    return { clientId, inviteId: String(made.data.inviteId), path: new URL(String(made.data.url)).pathname };
  };
  const asked = { platform: 'telegram', way: 'code', timezone: '' };
  const codeIn = ({ html }: Shown): string =>
    /<code class="copy">\/connect ([A-Z2-9]{10})<\/code>/.exec(html)?.[1] ?? assert.fail(html);
  /** Asks for a code, and opens its page. */
  const begun = async (guest: Guest, { path }: Link) => {
    const page = await guest.sent(path, asked);
    assert.match(page, /^\/connect\/code\/[\w-]{43}$/);
    const shown = await guest.get(page);
    assert.equal(shown.status, 200);
    return { page, shown, code: codeIn(shown) };
  };
  /** Somebody posts it there, and it is heard. */
  const posted = async (code: string, ...chats: readonly Chat[]) => {
    for (const chat of chats) network.write(chat, `/connect ${code}`);
    await until('the code is heard', async () => ((await it.codes.placesOf(code))?.length ?? 0) >= chats.length);
  };
  const accountsOf = async ({ clientId }: Link, by = it.world.owner) => {
    await it.world.settled();
    return (await by.get(`/accounts?clientId=${clientId}`)).rows;
  };
  const chatsOf = async (...args: Parameters<typeof accountsOf>) =>
    (await accountsOf(...args)).map(({ externalId }) => externalId).toSorted();
  const secretOf = async ({ clientId }: Link, chat: Chat) =>
    (await it.credentials.read(accountIdOf(clientId, 'telegram', String(chat.id))))?.secret;
  const isEnded = ({ status, html }: Shown): void => {
    assert.equal(status, 404);
    assert.match(html, /This step has ended/);
  };

  t('from the link to the account: the code is told how to be posted, waited for, and forgotten', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const first = await guest.get(link.path);
    assert.match(first.html, /<legend>Telegram: with our bot<\/legend>/);
    assert.match(first.html, /<button type="submit">Get a code for Telegram<\/button>/);
    assert.match(first.html, /<legend>Telegram: with a bot of your own<\/legend>/);
    const { page, shown, code } = await begun(guest, link);
    assert.match(shown.html, /Connect Telegram to <bdi>Café &amp; Söhne 1<\/bdi>/);
    assert.match(shown.html, new RegExp(`add @${bot.username} as an administrator`));
    assert.match(shown.html, new RegExp(`Post this message there, as it stands: <code class="copy">/connect ${code}<`));
    assert.doesNotMatch(shown.html, /role="alert"|<script|https?:\/\//);
    assert.match(shown.headers.get('content-security-policy') ?? '', /form-action 'self'/);
    assert.equal(shown.headers.get('cache-control'), 'no-store');
    const early = await guest.post(page);
    assert.equal(early.status, 200);
    assert.match(early.html, /role="alert">The message has not arrived yet\./);
    assert.equal(codeIn(early), code, 'the same code');
    assert.deepEqual(await chatsOf(link), []);
    const chat = network.chat({ username: 'cafe_news' });
    await posted(code, chat);
    assert.equal(await guest.sent(page), link.path);
    assert.match((await guest.get(link.path)).html, /Telegram: <strong><bdi>cafe_news<\/bdi><\/strong> \(connected\)/);
    const [account, ...others] = await accountsOf(link);
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.displayName, others],
      ['telegram', 'connected', String(chat.id), chat.title, []],
    );
    assert.deepEqual(await secretOf(link, chat), { operatorBot: true, chatId: String(chat.id) });
    assert.equal(await it.codes.placesOf(code), null, 'the code opens nothing more');
    const before = await it.world.head();
    isEnded(await guest.post(page));
    isEnded(await guest.get(page));
    assert.equal(await it.world.head(), before);
  });

  t('a reload, a second tab and a second press of the button store nothing more', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, code } = await begun(guest, link);
    for (const _ of [1, 2]) assert.equal(codeIn(await guest.get(page)), code);
    await posted(code, network.chat());
    const before = await it.world.head();
    const answers = await Promise.all([guest.post(page), guest.post(page), guest.post(page)]);
    for (const { status, html } of answers) {
      assert.ok(status === 303 || /This step has ended/.test(html), `${status} ${html}`);
    }
    assert.deepEqual(
      (await it.world.eventsAfter(before)).map(({ type }) => type),
      ['ConnectInviteUsed', 'AccountConnected'],
    );
  });

  t('a press of the button that comes too late leads to what the first one has connected', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, code } = await begun(guest, link);
    await posted(code, network.chat());
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    let isWaiting = false;
    gate = () => {
      isWaiting = true;
      gate = async () => {};
      return opened;
    };
    const late = guest.sent(page);
    await until('the press waits', () => isWaiting);
    assert.equal(await guest.sent(page), link.path);
    open();
    assert.equal(await late, link.path);
    assert.equal((await chatsOf(link)).length, 1);
  });

  t('a code in several chats: the guest chooses, and chats that are not chosen stay out', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, code } = await begun(guest, link);
    const [updates, jobs, stranger] = [network.chat(), network.chat({ username: 'cafe_jobs' }), network.chat()];
    await posted(code, updates, jobs, stranger);
    const choice = await guest.sent(page);
    assert.match(choice, /^\/connect\/choice\/[\w-]{43}$/);
    isEnded(await guest.get(page));
    const shown = await guest.get(choice);
    assert.match(shown.html, /Which accounts of Telegram\?/);
    for (const { title } of [updates, jobs, stranger]) assert.ok(shown.html.includes(title), title);
    assert.doesNotMatch(shown.html, / checked/);
    const none = await guest.post(choice);
    assert.equal(none.status, 422);
    assert.match(none.html, /Choose at least one account\./);
    const wrong = await guest.post(choice, { account: '3' });
    assert.equal(wrong.status, 422);
    const ticked = [updates, jobs].map(({ title }) => {
      const [, at = ''] = new RegExp(`value="(\\d)">[^\\n]*${title}`).exec(shown.html) ?? [];
      return ['account', at] as const;
    });
    assert.equal(await guest.sent(choice, ticked), link.path);
    assert.deepEqual(await chatsOf(link), [updates, jobs].map(({ id }) => String(id)).toSorted());
    assert.equal(await secretOf(link, stranger), undefined);
    const connected = (await guest.get(link.path)).html;
    assert.ok(connected.includes(`<bdi>${updates.title}</bdi>`), 'a private channel is named by its title');
    assert.match(connected, /<bdi>cafe_jobs<\/bdi>/);
    isEnded(await guest.post(choice, ticked));
  });

  t('what the bot may not do there is told in words, and the same code still works', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, code } = await begun(guest, link);
    const chat = network.chat();
    await posted(code, chat);
    chat.rights = 'no_posts';
    const refused = await guest.post(page);
    assert.equal(refused.status, 422);
    assert.match(refused.html, new RegExp(`role="alert">Make @${bot.username} an administrator of the channel`));
    assert.match(refused.html, /<title>Not connected yet: /);
    assert.equal(codeIn(refused), code);
    chat.rights = 'admin';
    network.arm('getChat', { kind: 'refuse', code: 502, description: 'Bad Gateway' });
    const late = await guest.post(page);
    assert.equal(late.status, 422);
    assert.match(late.html, /role="alert">Telegram does not answer now\. Try again in a few minutes\./);
    assert.equal(codeIn(late), code);
    assert.equal(await guest.sent(page), link.path);
    assert.equal((await chatsOf(link)).length, 1);
  });

  t('a bot that only the operator can mend is told to the operator, and not to the guest', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, code } = await begun(guest, link);
    await posted(code, network.chat());
    network.arm('getChat', { kind: 'refuse', code: 401, description: 'Unauthorized' });
    const refused = await guest.post(page);
    assert.equal(refused.status, 422);
    assert.match(refused.html, /role="alert">[^<]*Tell the people who sent you the link\./);
    assert.doesNotMatch(refused.html, /TELEGRAM_BOT_TOKEN|401/);
    assert.ok(it.world.lines.some((line) => line.includes('TELEGRAM_BOT_TOKEN: 401 Unauthorized')));
    assert.equal(await guest.sent(page), link.path);
  });

  t('another browser opens nothing, not even with the address of the page', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, code } = await begun(guest, link);
    await posted(code, network.chat());
    const [bare, stranger] = [it.guest(), it.guest()];
    await begun(stranger, link);
    for (const other of [bare, stranger]) {
      isEnded(await other.get(page));
      isEnded(await other.post(page));
    }
    const [, token = ''] = /([\w-]{43})$/.exec(page) ?? [];
    for (const path of [
      `/connect/choice/${token}`,
      `/connect/callback?state=${token}`,
      `/connect/code/${token.slice(1)}`,
      '/connect/code/x',
      `/connect/code/${'A'.repeat(43)}`,
      '/connect/code/%00',
    ]) {
      isEnded(await guest.get(path));
    }
    assert.deepEqual(await chatsOf(link), []);
    assert.equal(await guest.sent(page), link.path);
  });

  t('a code connects for its own guest only, in whatever chat it is posted', async () => {
    const other = await it.world.agency('South Star');
    const [link, foreign] = [await linkOf(), await linkOf(other.owner)];
    const [guest, stranger] = [it.guest(), it.guest()];
    const [own, theirs] = [await begun(guest, link), await begun(stranger, foreign)];
    const chat = network.chat();
    await posted(own.code, chat);
    const early = await stranger.post(theirs.page);
    assert.match(early.html, /has not arrived yet/);
    // A form names no chat, whatever is written into it.
    const named = await stranger.post(foreign.path, { ...asked, username: String(chat.id), code: own.code });
    assert.equal(named.status, 303);
    assert.match((await stranger.post(String(named.next), { code: own.code })).html, /has not arrived yet/);
    assert.equal(await guest.sent(own.page), link.path);
    assert.deepEqual(await chatsOf(foreign, other.owner), []);
    assert.equal(await secretOf(foreign, chat), undefined);
    assert.deepEqual(await chatsOf(link), [String(chat.id)]);
  });

  t('a link that was withdrawn, or ran out, and a client that was archived, end the step', async () => {
    const [revoked, expired, archived] = [
      await linkOf(),
      await linkOf(undefined, { expiresInHours: 1 }),
      await linkOf(),
    ];
    const guest = it.guest();
    const pages: string[] = [];
    for (const link of [revoked, expired, archived]) {
      const { page, code } = await begun(guest, link);
      await posted(code, network.chat());
      pages.push(page);
    }
    const context = contextOf(it.world.operator, it.world.workspaceId);
    await execute(it.world.store, invite, revoked.inviteId, { type: 'Revoke', reason: null }, context);
    await it.world.owner.delete(`/clients/${archived.clientId}`);
    it.world.clock.shiftMs = 3_600_001;
    const before = await it.world.head();
    for (const page of pages) {
      isEnded(await guest.get(page));
      isEnded(await guest.post(page));
    }
    it.world.clock.shiftMs = 0;
    assert.equal(await it.world.head(), before);
  });

  t('an attempt ends by time, and says so', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, code } = await begun(guest, link);
    await posted(code, network.chat());
    await it.pool.query('update ops.connect_attempts set expires_at = now() where invite_id = $1', [link.inviteId]);
    isEnded(await guest.post(page));
    assert.deepEqual(await chatsOf(link), []);
  });

  t('a link that has connected its accounts connects no other', async () => {
    const link = await linkOf(undefined, { maxAccounts: 1 });
    const guest = it.guest();
    for (const status of [303, 409]) {
      const { page, code } = await begun(guest, link);
      await posted(code, network.chat());
      assert.equal((await guest.post(page)).status, status);
    }
    assert.equal((await chatsOf(link)).length, 1);
  });

  t('a workspace has a bounded number of open codes, and another workspace its own', async () => {
    const crowded = await it.world.agency('Crowded');
    const link = await linkOf(crowded.owner);
    for (let at = 0; at < codeLimits.openPerWorkspace; at += 1) {
      assert.equal(await it.codes.mint(`CROWDED${at}`, crowded.workspaceId), true);
    }
    const guest = it.guest();
    const refused = await guest.post(link.path, asked);
    assert.equal(refused.status, 422);
    assert.match(refused.html, /role="alert">Too many codes are open\. Try again in 15 minutes\./);
    await begun(guest, await linkOf());
  });

  t('a form may not have another way than the network', async () => {
    const link = await linkOf();
    for (const way of ['consent', 'choice', '__proto__']) {
      assert.equal((await it.guest().post(link.path, { ...asked, way })).status, 422, way);
    }
  });

  t('no token of the bot and no address of a step stands in a page or in the log', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const { page, shown } = await begun(guest, link);
    const [, secret = ''] = bot.token.split(':');
    assert.ok(secret.length > 8 && !shown.html.includes(secret));
    const [, token = ''] = /([\w-]{43})$/.exec(page) ?? [];
    const log = it.world.lines.join('\n');
    assert.ok(log.includes('/connect/'), 'requests are logged');
    for (const one of [secret, token]) assert.ok(!log.includes(one));
  });
});
