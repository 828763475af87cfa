import { Type } from 'typebox';
import { Named } from '#schemas/published.ts';
import { InstantInput } from './common.ts';

/** The clock of a sandbox workspace, which a test key moves ahead. */

const counted = (description: string) => Type.Integer({ description });

const LastMove = Named(
  'SandboxClockLastMove',
  Type.Object(
    {
      from: Type.String({ format: 'date-time', description: 'The time that the workspace had before.' }),
      targets: counted('Targets that went out, were tried again, or were approved too late.'),
      recycles: counted('Posts of which a copy was made.'),
      accounts: counted('Accounts of which figures were read.'),
      reports: counted('Reports that were made.'),
      deliveries: counted('Webhook deliveries that were tried again.'),
    },
    { description: 'What the last move made due, for workers that began at once. At most 1,000 of each are counted.' },
  ),
);

export const SandboxClock = Named(
  'SandboxClock',
  Type.Object(
    {
      object: Type.Literal('sandbox_clock', { description: 'The kind of resource.' }),
      now: Type.String({ format: 'date-time', description: 'The time that the workspace has. It runs on.' }),
      realNow: Type.String({ format: 'date-time', description: 'Real time. In a live workspace `now` is the same.' }),
      latest: Type.String({ format: 'date-time', description: 'To where it can be moved now: 400 days ahead.' }),
      lastMove: Type.Union([LastMove, Type.Null()], { description: 'Null: it was never moved.' }),
    },
    { description: 'The clock of a workspace.' },
  ),
);

export const SandboxClockMove = Named(
  'SandboxClockMove',
  Type.Object(
    { to: InstantInput('The time that the workspace shall have: later than its `now`, and at most `latest`.') },
    { description: 'A move of the clock.' },
  ),
);
