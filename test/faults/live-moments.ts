import type { LiveActionName } from './live-load.ts';
import type { LiveNetworks } from './live-networks.ts';

/** Calls to networks at which publishers die: before the network takes the call, or after it has, without an answer. */
export interface Moment {
  readonly name: string;
  readonly by: LiveActionName;
  arm(networks: LiveNetworks, run: () => void): void;
}

const both = ['before', 'after'] as const;

const ofX = (route: string, by: LiveActionName, says?: string): readonly Moment[] =>
  both.map((when) => ({
    ...{ name: `X ${route}${says === undefined ? '' : ` ${says}`}, ${when} it is taken`, by },
    arm: ({ x }, run) =>
      x.script({ route, ...(says === undefined ? {} : { says }), then: { run, then: `silent_${when}` } }),
  }));

const ofTelegram = (method: string, by: LiveActionName): readonly Moment[] =>
  both.map((when) => ({
    ...{ name: `Telegram ${method}, ${when} it is taken`, by },
    arm: ({ telegram }, run) => telegram.arm(method, { kind: 'met', run, isTaken: when === 'after' }),
  }));

const append = 'POST /2/media/upload/:id/append';
/** The one after the first. */
const laterAppends = ofX(append, 'video').map(
  (moment): Moment => ({
    ...{ ...moment, name: `${moment.name}, not the first` },
    arm: (networks, run) => {
      networks.x.script({ route: append, then: { run: () => undefined, then: 'act' } });
      moment.arm(networks, run);
    },
  }),
);

export const moments: readonly Moment[] = [
  ...ofX('POST /2/media/upload/initialize', 'video'),
  ...ofX(append, 'video'),
  ...laterAppends,
  ...ofX('POST /2/media/upload/:id/finalize', 'video'),
  ...ofX('GET /2/media/upload', 'video'),
  ...ofX('POST /2/media/upload', 'album'),
  ...ofX('POST /2/media/metadata', 'album'),
  ...ofX('POST /2/tweets', 'text'),
  ...ofX('POST /2/tweets', 'thread', '"in_reply_to_tweet_id"'),
  ...ofX('POST /2/oauth2/token', 'lapse'),
  ...ofX('GET /2/users/:id/tweets', 'lost'),
  ...ofTelegram('getChat', 'text'),
  ...ofTelegram('sendMessage', 'text'),
  ...ofTelegram('sendVideo', 'video'),
  ...ofTelegram('sendMediaGroup', 'album'),
];
