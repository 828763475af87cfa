import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { codeLimits } from '#contracts/ports/connect-codes.ts';
import { checkBot, checkChat, operatorConnector, ownBotConnector } from '#infra/platforms/telegram/index.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { openPool } from '#infra/postgres/pool.ts';
import type { Bot } from '#test/support/networks/telegram/state.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { telegramWorld } from './world.ts';

suite('telegram is connected', (t) => {
  let it: Awaited<ReturnType<typeof telegramWorld>>;
  t.before(async () => {
    it = await telegramWorld();
  });
  t.after(() => it?.network.close());
  const soon = () => AbortSignal.timeout(10_000);
  const check = async (token: string, chatId: string) => {
    const bot = await checkBot(it.options, { token, isOperators: false }, soon());
    return bot.kind === 'bot' ? checkChat(it.options, bot, chatId, soon()) : bot;
  };

  t('a channel whose bot may post is connected by its number', async () => {
    const bot = it.network.bot();
    const chat = it.network.chat({ username: 'acme_open' });
    const checked = await check(bot.token, String(chat.id));
    assert.deepEqual(checked, {
      kind: 'connected',
      credential: { secret: { botToken: bot.token, chatId: String(chat.id) }, expiresAt: null },
      profile: {
        ...{ externalId: String(chat.id), username: 'acme_open', displayName: chat.title, avatarUrl: null },
        scopes: ['can_post_messages'],
        consentEndsAt: null,
      },
    });
  });

  t(
    'the form connects a chat that a bot of the guest may post to, by its name or its number, and no other',
    async () => {
      const bot = it.network.bot();
      const open = it.network.chat({ username: 'form_open' });
      const closed = it.network.chat({ username: 'form_closed', rights: 'no_posts' });
      const form = ownBotConnector(it.options);
      const connected = async (name: string, token = bot.token) => {
        const answer = await form.connect(name, new Map([['botToken', token]]), soon());
        return answer.kind === 'connected' ? answer.profile.externalId : answer.words;
      };
      for (const name of ['@form_open', 'form_open', String(open.id)])
        assert.equal(await connected(name), String(open.id));
      assert.match(await connected('form_closed'), /administrator of the channel with the right to post/);
      assert.match(await connected(String(closed.id)), /administrator of the channel/);
      assert.match(await connected('nobody_has_this'), /sees no such chat/);
      assert.match(await connected('a b'), /sees no such chat/);
      assert.match(await connected('form_open', 'no token'), /has the form/);
      assert.match(await connected('form_open', '1:gone'), /does not take this bot token/);
    },
  );

  t('what is wrong is told in words', async () => {
    const bot = it.network.bot();
    const words = async (rights: 'no_posts' | 'member' | 'kicked', token = bot.token) => {
      const chatId = String(it.network.chat({ rights }).id);
      const checked = await check(token, chatId);
      return checked.kind === 'refused' ? checked.words : checked.kind;
    };
    assert.match(await words('no_posts'), /administrator of the channel with the right to post/);
    assert.match(await words('member'), /administrator of the channel/);
    assert.match(await words('kicked'), /not in this chat any more/);
    assert.match(await words('member', '1:gone'), /does not take this bot token/);
    const wrong = await check('a/../b', '-1');
    assert.ok(wrong.kind === 'refused');
  });
});

suite("telegram is connected by the operator's bot", (t) => {
  let it: Awaited<ReturnType<typeof telegramWorld>>;
  let pool: Pool;
  let codes: PostgresConnectCodes;
  let bot: Bot;
  t.before(async () => {
    it = await telegramWorld();
    bot = it.network.bot();
    pool = openPool({ url: (await preparedDatabase()).url });
    codes = new PostgresConnectCodes({ pool });
  });
  t.after(async () => {
    await pool?.end();
    it?.network.close();
  });
  const soon = () => AbortSignal.timeout(10_000);
  const connector = (token = bot.token) => operatorConnector({ ...it.options, token, codes });
  const begun = async (by = connector()) => {
    const one = await by.begin(randomUUID(), soon());
    assert.ok(one.kind === 'begun', JSON.stringify(one));
    return one;
  };

  t('a code is durable and stands in the steps for the guest', async () => {
    const { code, steps } = await begun();
    assert.deepEqual(await codes.placesOf(code), []);
    assert.match(steps.join('\n'), new RegExp(`@${bot.username} as an administrator[^]*: /connect ${code}\\n`));
    assert.ok(!steps.join().includes(bot.token));
    assert.deepEqual(await connector().found(code, soon()), { kind: 'accounts', accounts: [] });
  });

  t('chats in which the code spoke are offered, each as it is now, and the credential holds no token', async () => {
    const { code } = await begun();
    const open = it.network.chat({ username: 'acme_code' });
    const closed = it.network.chat({ rights: 'kicked' });
    for (const { id } of [closed, open]) await codes.spoke(code, String(id));
    const found = await connector().found(code, soon());
    assert.deepEqual(found, {
      kind: 'accounts',
      accounts: [
        {
          kind: 'connected',
          credential: { secret: { operatorBot: true, chatId: String(open.id) }, expiresAt: null },
          profile: {
            ...{ externalId: String(open.id), username: 'acme_code', displayName: open.title, avatarUrl: null },
            ...{ scopes: ['can_post_messages'], consentEndsAt: null },
          },
        },
      ],
    });
    open.rights = 'no_posts';
    const refused = await connector().found(code, soon());
    assert.ok(refused.kind === 'refused');
    assert.match(refused.words, /with the right to post messages/);
  });

  t('two customers connect the same chat, each by a code of its own; a code shows no chat of another', async () => {
    const chat = it.network.chat();
    const [first, second, third] = [await begun(), await begun(), await begun()];
    for (const { code } of [first, second]) await codes.spoke(code, String(chat.id));
    const offered = async (code: string) => {
      const found = await connector().found(code, soon());
      return found.kind === 'accounts' ? found.accounts.map(({ profile }) => profile.externalId) : found.words;
    };
    assert.deepEqual(await offered(first.code), [String(chat.id)]);
    assert.deepEqual(await offered(second.code), [String(chat.id)]);
    assert.deepEqual(await offered(third.code), []);
    await connector().forget(first.code);
    assert.match(String(await offered(first.code)), /has run out\. Start again/);
    assert.deepEqual(await offered(second.code), [String(chat.id)]);
    for (const wrong of ['', 'x', 'A'.repeat(10), "' or true --", '\0']) {
      assert.match(String(await offered(wrong)), /has run out/);
    }
  });

  t("a dead token is the operator's matter, and a silent network passes", async () => {
    const dead = await connector('1:gone').begin(randomUUID(), soon());
    assert.ok(dead.kind === 'refused');
    assert.match(dead.words, /Tell the people who sent you the link/);
    assert.equal(dead.operator, 'Telegram does not take TELEGRAM_BOT_TOKEN: 401 Unauthorized');
    const one = connector();
    it.network.arm('getMe', { kind: 'refuse', code: 502, description: 'Bad Gateway' });
    const later = await one.begin(randomUUID(), soon());
    assert.ok(later.kind === 'refused' && later.operator === undefined);
    assert.match(later.words, /does not answer now/);
    await begun(one);
  });

  t('a workspace with too many open codes waits, and takes none from another', async () => {
    const workspaceId = randomUUID();
    const by = connector();
    for (let at = 0; at < codeLimits.openPerWorkspace; at += 1) {
      assert.equal((await by.begin(workspaceId, soon())).kind, 'begun');
    }
    const refused = await by.begin(workspaceId, soon());
    assert.ok(refused.kind === 'refused');
    assert.match(refused.words, /Too many codes/);
    await begun(by);
  });

  t('a code with as many chats as it remembers costs two calls a chat', async () => {
    const { code } = await begun();
    for (let at = 0; at < codeLimits.places; at += 1) await codes.spoke(code, String(it.network.chat().id));
    const by = connector();
    await by.found(code, soon());
    const before = it.network.calls.length;
    const found = await by.found(code, soon());
    assert.ok(found.kind === 'accounts' && found.accounts.length === codeLimits.places);
    assert.equal(it.network.calls.length - before, 2 * codeLimits.places);
  });
});
