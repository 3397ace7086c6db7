RSpec.configure { |config| config.example_status_persistence_file_path = 'status.txt' }
