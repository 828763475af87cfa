/** Accounts of networks from their connect link to their posts, over separate processes, which all of them share. */
import { suite } from '#test/support/suite.ts';
import { pageOfFacebook } from './live/facebook.ts';
import { accountOfInstagram } from './live/instagram.ts';
import { accountsOfLinkedIn } from './live/linkedin.ts';
import { accountOfPinterest } from './live/pinterest.ts';
import { channelOfTelegram } from './live/telegram.ts';
import { accountOfThreads } from './live/threads.ts';
import { accountOfTikTok } from './live/tiktok.ts';
import { LiveWorld } from './live/world.ts';
import { accountOfX } from './live/x.ts';
import { channelOfYouTube } from './live/youtube.ts';

suite('live accounts, over separate processes', { timeoutMs: 300_000 }, (t) => {
  const world = new LiveWorld();
  t.before(() => world.open());
  t.after(() => world.close());

  // Of these four nothing is left; the others stay connected.
  accountOfX(t, world);
  accountOfThreads(t, world);
  accountOfPinterest(t, world);
  accountOfTikTok(t, world);
  accountsOfLinkedIn(t, world);
  channelOfYouTube(t, world);
  pageOfFacebook(t, world);
  accountOfInstagram(t, world);
  channelOfTelegram(t, world);
});
