import { Type } from 'typebox';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { OnNetworks } from './analytics.ts';
import { Maybe, paging, UuidInput } from './common.ts';

/** The slots of the week, the best time to post first. */

export const BestTimesQuery = Type.Object({
  ...paging,
  platform: OnNetworks(
    'Only posts on this network, or on one of several with commas. Absent: the networks of the connected accounts.',
  ),
  clientId: Maybe(said(UuidInput, 'Only accounts of this client, and its zone. Absent: the whole workspace.')),
});

export const BestTime = Named(
  'BestTime',
  Type.Object(
    {
      object: Type.Literal('best_time', { description: 'The kind of resource.' }),
      weekday: Type.Integer({ minimum: 1, maximum: 7, description: 'Day of the week: 1 is Monday, 7 Sunday.' }),
      hour: Type.Integer({
        minimum: 0,
        maximum: 23,
        description: 'Hour of the day: 18 is the time from 18:00 until 19:00.',
      }),
      timezone: Type.String({
        description: 'IANA zone of `weekday` and `hour`: the client’s, else the workspace’s.',
        examples: ['Europe/Berlin'],
      }),
      score: Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'How good the slot is: 0.5 is an average time. It follows from `lift`: lift / (1 + lift).',
      }),
      lift: Type.Number({
        minimum: 0,
        description: 'Expected engagement as a multiple of the usual: 1 is an average time.',
      }),
      sampleSize: Type.Integer({
        minimum: 0,
        description:
          'Posts of the last 90 days in exactly this slot, at least a week old. A post on several accounts counts once.',
      }),
      basis: said(
        OpenEnum(
          'BestTimeBasis',
          ['observed', 'prior'],
          'What a slot rests on. observed: on posts of this slot too; prior: no post of this slot was observed, so it is estimated from its hour, its weekday and the network.',
        ),
        'Whether any post of this slot was observed.',
      ),
    },
    { description: 'A slot of the week, one hour long, and how well a post may do in it.' },
  ),
);
