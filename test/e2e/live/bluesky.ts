/**
 * An account of Bluesky, by an app password, on the real server of its protocol, which `test/e2e/live-networks.test.ts` tries in
 * full. The service that counts is simulated from its lexicons: that server has none.
 */
import { startBlueskyServices } from '#test/support/networks/bluesky-services.ts';
import type { Identity, Pds } from '#test/support/networks/pds.ts';
import type { LiveWorld, Place } from './world.ts';

export const accountOfBluesky = (world: LiveWorld, pds: Pds): Place => {
  let owner: Identity;

  world.join(async () => {
    const { origin, close } = await startBlueskyServices(pds);
    const env = { BLUESKY_RESOLVER: pds.service, BLUESKY_DIRECTORY: pds.directory, BLUESKY_APP_VIEW: origin };
    return { origin, others: [pds.service, pds.directory], env, close };
  });

  return {
    platform: 'bluesky',
    connect: async (link) => {
      owner = await pds.identity();
      const password = await pds.appPassword(owner);
      await world.guest().sent(link, { platform: 'bluesky', username: owner.handle, password, timezone: '' });
    },
    shown: async (words) => {
      const params = { repo: owner.did, collection: 'app.bsky.feed.post' };
      const { records } = await pds.call('com.atproto.repo.listRecords', { params });
      const all = records as readonly { readonly uri: string; readonly value: { readonly text: string } }[];
      return all.filter(({ value }) => value.text === words).map(({ uri }) => uri);
    },
  };
};
