import type { Failure } from '#schemas/target.ts';

/** Failures that are found without a network, beside those a network tells; served under /errors/{code}. */

const failure = (
  category: Failure['category'],
  code: string,
  message: string,
  retryable: boolean,
  actor: Failure['actor'],
): Failure => ({
  category,
  code,
  message,
  platformCode: null,
  platformMessage: null,
  retryable,
  actor,
  mediaId: null,
});

export const reauthRequired = failure(
  'reauth_required',
  'account_reauth_required',
  'The account must be connected anew before it can publish.',
  true,
  'user',
);
export const disconnected = failure(
  'reauth_required',
  'account_disconnected',
  'The account is not connected any more.',
  true,
  'user',
);
export const noAdapter = failure(
  'permission',
  'network_not_supported',
  'This installation cannot publish to that network yet.',
  false,
  'service',
);
export const interrupted = failure(
  'transient',
  'publish_interrupted',
  'Publishing was interrupted before the network was called.',
  true,
  'service',
);
export const adapterFailed = failure(
  'transient',
  'publish_error',
  'Publishing stopped on an error of ours before the network was called.',
  true,
  'service',
);
export const outcomeUnknown = failure(
  'unknown',
  'outcome_unknown',
  'The network was asked to publish and did not say whether it did.',
  false,
  'platform',
);
export const outcomeUnreadable = failure(
  'unknown',
  'outcome_unreadable',
  'The network answered with something that cannot be recorded.',
  false,
  'service',
);

export const publishFailures: readonly Failure[] = [
  reauthRequired,
  disconnected,
  noAdapter,
  interrupted,
  adapterFailed,
  outcomeUnknown,
  outcomeUnreadable,
];
