/**
 * Accounts of networks from their connect link to their posts, over separate processes, which all of them share. A run draws
 * whose story it tells, with the deaths in it; the post to all of them, and the links to it, are in each run.
 */
import { rowsOfRun, withoutTests } from '#test/support/drawing.ts';
import { orMissing } from '#test/support/missing.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { type Declare, suite } from '#test/support/suite.ts';
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

  // Long ones are neighbours, and short ones.
  const stories = ['facebook', 'instagram', 'threads', 'youtube', 'telegram', 'tiktok', 'x', 'pinterest', 'linkedin'];
  const drawn = rowsOfRun('stories of networks', stories, (name) => name);
  /** A network whose story is not told is joined too. */
  const of = (name: string): Declare => (drawn.includes(name) ? t : withoutTests(t));
  // Of the first four nothing is left; the others stay connected.
  const x = accountOfX(of('x'), world);
  const threads = accountOfThreads(of('threads'), world);
  const pinterest = accountOfPinterest(of('pinterest'), world);
  const tiktok = accountOfTikTok(of('tiktok'), world);
  const linkedin = accountsOfLinkedIn(of('linkedin'), world);
  const youtube = channelOfYouTube(of('youtube'), world);
  const facebook = pageOfFacebook(of('facebook'), world);
  const instagram = accountOfInstagram(of('instagram'), world);
  const telegram = channelOfTelegram(of('telegram'), world);
  const others = [x, pinterest, tiktok, linkedin, facebook, instagram, telegram];
  if ('missing' in opened) t.skip('all: Bluesky is among them', opened.missing);
  const bluesky = 'missing' in opened ? [] : [accountOfBluesky(world, opened.pds)];
  postToAll(t, world, { others: [...others, ...bluesky], threads, youtube });
});
