# All that RSpec can say about an example.

RSpec.describe 'A shop <&> "quoted"' do
  it 'passes', :smoke do
    puts 'to stdout ✓'
    warn 'to stderr'
    expect(1).to eq 1
  end

  it 'fails' do
    expect({ name: 'Ann' }).to eq({ name: "Bob\nsecond line <&> ]]>" })
  end

  it 'fails twice', :aggregate_failures do
    expect(1).to eq 2
    expect('a').to eq "\e[31mred\e[0m \x01"
  end

  it 'raises' do
    raise ArgumentError, 'inner'
  rescue ArgumentError
    raise "outer\nsecond line"
  end

  it 'is to be written'
  it('is pending') { pending('bug #7'); expect(1).to(eq(2)) }
  it('passes unexpectedly') { pending('bug #8'); expect(1).to(eq(1)) }
  it('skips itself') { skip 'no <printer>' }
  xit('is skipped') { raise }
  it { is_expected.to be_a String }

  ['ünïcode ✓', "<&>\"'", "line\nbreak"].each do |text|
    it("takes odd text: #{text}") { expect(text).not_to include "\n" }
  end

  describe 'nested' do
    context('deeper') { it('passes') {} }
  end

  # Fails once without a marker file, and then passes.
  it 'is flaky' do
    first = !File.exist?('marker')
    File.write('marker', '')
    expect(first).to be false
  end

  describe('broken before all') do
    before(:all) { raise 'before all' }
    it('is never run') {}
    it('is never run either') {}
  end

  describe('broken before') do
    before { raise 'before each' }
    it('is never run') {}
  end

  describe('broken after') do
    after { raise 'after each' }
    it('passes but breaks later') {}
    it('fails and breaks later') { raise 'within it' }
  end

  describe('broken after all') do
    after(:all) { raise 'after all' }
    it('passes before it') {}
  end
end
