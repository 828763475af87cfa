/** The port's suite over the adapter and the simulated network. */
import { type Harness, platformSuite } from '#contracts/ports/platform.suite.ts';
import { TelegramAdapter } from '#infra/platforms/telegram/index.ts';
import { faultText } from '#test/support/networks/telegram/faults.ts';
import { suite } from '#test/support/suite.ts';
import { telegramWorld } from './world.ts';

const harness = async (): Promise<Harness> => {
  const { network, account, options } = await telegramWorld();
  const bot = network.bot();
  const own = await account(network.chat({ username: 'acme_news' }), bot);
  const made = (targetId: string, isReply: boolean) =>
    network
      .made(targetId)
      .filter(({ replyTo }) => (replyTo !== null) === isReply)
      .map(({ chatId, messageId }) => `${chatId}:${messageId}`);
  return {
    open: async () => new TelegramAdapter(options),
    close: async () => network.close(),
    posts: async (targetId) => made(targetId, false),
    comments: async (targetId) => made(targetId, true),
    scripted: faultText,
    // It takes the same text twice, and "down" strikes the look at the chat: `adapter.test.ts`.
    without: ['duplicate', 'down'],
    isUnreadable: true,
    platforms: ['telegram'],
    account: () => own,
    silent: () => null,
    overrides: () => ({}),
    media: async () => [],
  };
};

suite('telegram as a platform', (t) => platformSuite(t, harness));
