/**
 * What the configuration names cannot be used as it is. The message is for the operator: it names the setting, where it
 * points to (never a password), and what to do next. A process ends with it before it does any work.
 */
export class SetupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SetupError';
  }
}
