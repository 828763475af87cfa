import { Type } from 'typebox';
import { Mode, Uuid } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { stamps } from './common.ts';

/** The workspace of the credential; under a test key its sandbox twin. */

const Limits = Named(
  'AgencyLimits',
  Type.Object(
    {
      requestsPerMinute: Type.Integer({
        description: 'Requests a minute on average, for each credential and api process.',
        examples: [600],
      }),
      requestBurst: Type.Integer({
        description: 'Requests that may come at once, for each credential and api process.',
        examples: [100],
      }),
      bodyBytes: Type.Integer({ description: 'Longest body of a request, in bytes.', examples: [1_048_576] }),
      targetsPerPost: Type.Integer({ description: 'Targets that one post may have.', examples: [500] }),
    },
    { description: 'How much one caller may ask for.' },
  ),
);

const Publishing = Named(
  'AgencyPublishing',
  Type.Object(
    {
      status: said(
        OpenEnum(
          'PublishingStatus',
          ['on', 'hold'],
          'hold: no post, hand-over, first comment or copy goes out, and nothing is taken back from a network.',
        ),
        'Whether posts go out.',
      ),
      since: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
        description: 'Since when it is held; null where it is not, or where a setting of the service holds it.',
      }),
    },
    { description: 'Whether posts go out.' },
  ),
);

export const Agency = Named(
  'Agency',
  Type.Object(
    {
      id: said(Uuid, 'Id of the workspace; its sandbox twin has another.'),
      object: Type.Literal('agency', { description: 'The kind of resource.' }),
      name: Type.String({ description: 'Name of the agency.' }),
      timezone: Type.String({
        description: 'IANA zone of the workspace: the days of its analytics begin at midnight there.',
        examples: ['Europe/Berlin'],
      }),
      mode: said(Mode, 'Whether the credential is for the live workspace or for its sandbox twin.'),
      members: Type.Integer({
        minimum: 0,
        description: 'Number of members of the agency, also where the sandbox twin is shown.',
      }),
      publishing: said(
        Publishing,
        'Whether posts go out. While an operator of the service holds publishing, what is due waits, and goes out once it is resumed.',
      ),
      limits: said(Limits, 'How much the caller may ask for.'),
      ...stamps,
    },
    { description: 'The workspace of the credential; under a test key its sandbox twin.' },
  ),
);
