RSpec.describe('broken') { it('is never run') {} }
raise 'while loading'
