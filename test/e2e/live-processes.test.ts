/** Accounts of networks from their connect link to their posts, over separate processes, which all of them share. */
import { orMissing } from '#test/support/missing.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { suite } from '#test/support/suite.ts';
import { postToAll } from './live/all.ts';
import { accountOfBluesky } from './live/bluesky.ts';
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

/** Where no registry answers, Bluesky is not among the ten, and the test says so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

suite('live accounts, over separate processes', { timeoutMs: 360_000 }, (t) => {
  const world = new LiveWorld();
  t.before(() => world.open());
  t.after(() => world.close());

  // Of these four nothing is left; the others stay connected.
  const x = accountOfX(t, world);
  const threads = accountOfThreads(t, world);
  const pinterest = accountOfPinterest(t, world);
  const tiktok = accountOfTikTok(t, world);
  const linkedin = accountsOfLinkedIn(t, world);
  const youtube = channelOfYouTube(t, world);
  const facebook = pageOfFacebook(t, world);
  const instagram = accountOfInstagram(t, world);
  const telegram = channelOfTelegram(t, world);
  const others = [x, pinterest, tiktok, linkedin, facebook, instagram, telegram];
  if ('missing' in opened) t.skip('all: Bluesky is among them', opened.missing);
  const bluesky = 'missing' in opened ? [] : [accountOfBluesky(world, opened.pds)];
  postToAll(t, world, { others: [...others, ...bluesky], threads, youtube });
});
